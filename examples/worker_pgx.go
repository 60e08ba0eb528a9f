// A job worker: Go, pgx.
//
//	go run worker_pgx.go
//
// Copy it, and replace handle(), save() and the settings.  examples/README.md explains the parts, which have the same
// names in every language.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// through PgBouncer: transaction pooling, and a pool of its own for the connection that waits, see docs/pgbouncer.md
var (
	databaseURL = setting("DATABASE_URL", "postgresql:///shop")
	waitURL     = setting("WAIT_URL", databaseURL)
	queue       = setting("QUEUE", "jobs")
	workerCount = number("WORKERS", "4") // goroutines, each with a connection
	batchSize   = number("BATCH", "1")   // messages that a worker takes at a time
	lease       = number("LEASE", "60")  // seconds until a dead worker's messages come back
)

const firstPause, lastPause = 100 * time.Millisecond, 5 * time.Second // between attempts to connect, growing

// stopping is done as soon as a signal has come.
var stopping, _ = signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
var always = context.Background()

// Reject is the error of a message that can never succeed: no more attempts.
type Reject struct{ error }

type Message struct {
	msgid    string
	attempts int
	payload  []byte
	result   int64
}

// handle is your work, outside of any transaction.  An error is the message's error: it is tried again later.
func handle(message *Message) error {
	var job struct {
		N        int64
		Seconds  float64
		Failures int
		Reject   bool
	}
	if err := json.Unmarshal(message.payload, &job); err != nil {
		return Reject{err}
	}
	time.Sleep(time.Duration(job.Seconds * float64(time.Second)))
	if job.Reject {
		return Reject{errors.New("no such job")}
	}
	if message.attempts < job.Failures {
		return fmt.Errorf("failure %d of %d", message.attempts+1, job.Failures)
	}
	message.result = 2 * job.N
	return nil
}

// save stores your results, in the transaction of the acknowledgement: they are saved exactly once.
func save(tx pgx.Tx, message *Message) error {
	_, err := tx.Exec(always,
		"INSERT INTO job_result (msgid, attempts, result) VALUES ($1::text::uuid, $2::int, $3::bigint)",
		message.msgid, message.attempts, message.result)
	return err
}

func setting(name, otherwise string) string {
	if value, found := os.LookupEnv(name); found {
		return value
	}
	return otherwise
}

func number(name, otherwise string) float64 {
	value, err := strconv.ParseFloat(setting(name, otherwise), 64)
	if err != nil {
		panic(err)
	}
	return value
}

func now() float64 { return float64(time.Now().UnixMilli()) / 1000 }

func log(details ...any) { fmt.Printf("%.3f %s", now(), fmt.Sprintln(details...)) }

// Batch has the messages that were taken together; open are those that are not settled.
type Batch struct {
	receipt int64
	until   atomic.Value // seconds
	taken   []*Message
	open    sync.Map
}

func (batch *Batch) isOpen(message *Message) bool {
	_, found := batch.open.Load(message.msgid)
	return found
}

// querier is a connection or a transaction.
type querier interface {
	Query(ctx context.Context, query string, arguments ...any) (pgx.Rows, error)
}

func (batch *Batch) openOf(messages []*Message) (ids []string) {
	for _, message := range messages {
		if batch.isOpen(message) {
			ids = append(ids, message.msgid)
		}
	}
	return ids
}

// ask calls one of the functions that end or extend leases; its answers are results of messages.
func (batch *Batch) ask(db querier, call string, ids []string, more ...any) (map[string]string, error) {
	rows, err := db.Query(always, "SELECT msgid::text, result FROM aq."+call,
		append([]any{queue, "{" + strings.Join(ids, ",") + "}", batch.receipt}, more...)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	answers := map[string]string{}
	for rows.Next() {
		var msgid, answer string
		if err := rows.Scan(&msgid, &answer); err != nil {
			return nil, err
		}
		answers[msgid] = answer
	}
	return answers, rows.Err()
}

// Database is a connection that is made again when it is lost.
type Database struct {
	url string
	db  *pgx.Conn
}

// run calls work(connection), again after a lost connection: so it must be safe to repeat.  When the worker stops, only
// what must be done is tried again.
func (database *Database) run(untilDone bool, work func(db *pgx.Conn) error) error {
	for pause := firstPause; ; pause *= 2 {
		err := database.connect()
		if err == nil {
			if err = work(database.db); err == nil || !database.db.IsClosed() {
				return err
			}
		}
		if stopping.Err() != nil && !untilDone {
			return err
		}
		if pause > lastPause {
			pause = lastPause
		}
		log("reconnect", err)
		time.Sleep(pause)
	}
}

func (database *Database) connect() error {
	if database.db != nil && !database.db.IsClosed() {
		return nil
	}
	config, err := pgx.ParseConfig(database.url)
	if err != nil {
		return err
	}
	config.ConnectTimeout = 10 * time.Second
	config.RuntimeParams["application_name"] = fmt.Sprint("worker ", os.Getpid())
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // no prepared statements: for PgBouncer
	database.db, err = pgx.ConnectConfig(always, config)
	return err
}

// Waiting has one connection on which a worker waits for messages.  The other workers without messages queue for the
// turn.
type Waiting struct {
	turn     sync.Mutex
	database Database
}

// take returns the next messages, or nil when the worker stops.
func (waiting *Waiting) take(worker *Worker) (*Batch, error) {
	waiting.turn.Lock()
	defer waiting.turn.Unlock()
	for stopping.Err() == nil {
		if batch, err := worker.take(); batch != nil || err != nil {
			return batch, err
		}
		err := waiting.database.run(false, func(db *pgx.Conn) error {
			_, err := db.Exec(stopping, "CALL aq.wait($1, '30 seconds')", queue)
			return err
		})
		if err != nil && stopping.Err() == nil {
			return nil, err
		}
	}
	return nil, nil
}

type Worker struct {
	waiting  *Waiting
	database Database
	batch    atomic.Pointer[Batch]
}

func (worker *Worker) run() {
	for stopping.Err() == nil {
		batch, err := worker.waiting.take(worker)
		if batch != nil {
			worker.batch.Store(batch)
			err = worker.work(batch)
			worker.batch.Store(nil)
		}
		if err != nil { // for instance a stopped queue, or a missing privilege
			log("error", err)
			time.Sleep(lastPause)
		}
	}
}

func (worker *Worker) take() (*Batch, error) {
	var batch *Batch
	err := worker.database.run(false, func(db *pgx.Conn) error {
		batch = &Batch{}
		batch.until.Store(now() + lease)
		rows, err := db.Query(always, `SELECT receipt, msgid::text, attempts, payload::text
			FROM aq.dequeue($1, max_messages => $2::int, lease => make_interval(secs => $3))`, queue, int(batchSize), lease)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			message := &Message{}
			if err := rows.Scan(&batch.receipt, &message.msgid, &message.attempts, &message.payload); err != nil {
				return err
			}
			batch.taken = append(batch.taken, message)
			batch.open.Store(message.msgid, message)
		}
		return rows.Err()
	})
	if err != nil || len(batch.taken) == 0 {
		return nil, err
	}
	return batch, nil
}

func (worker *Worker) work(batch *Batch) error {
	var handled []*Message
	for _, message := range batch.taken {
		if stopping.Err() != nil || now() > batch.until.Load().(float64) {
			break
		}
		if !batch.isOpen(message) { // the heartbeat has found that the lease is over
			continue
		}
		log("begin", message.msgid, message.attempts, fmt.Sprintf("%.3f", batch.until.Load()))
		err := handle(message)
		if errors.As(err, &Reject{}) {
			err = worker.settle(batch, "reject($1, $2::text::uuid[], $3, error => $4)", []*Message{message}, nil, err.Error())
		} else if err != nil {
			err = worker.fail(batch, message, err)
		} else {
			handled = append(handled, message)
		}
		if err != nil {
			return err
		}
	}
	if err := worker.finish(batch, handled); err != nil {
		return err
	}
	// not begun: given back unseen
	return worker.settle(batch, "release($1, $2::text::uuid[], $3, count => $4)", batch.taken, nil, false)
}

// finish saves results and acknowledges their messages.
func (worker *Worker) finish(batch *Batch, handled []*Message) error {
	err := worker.settle(batch, "acknowledge($1, $2::text::uuid[], $3)", handled, save)
	if err == nil {
		return nil
	}
	if len(handled) == 1 {
		return worker.fail(batch, handled[0], err)
	}
	for _, message := range handled { // the error of save(): for which message?
		if err := worker.finish(batch, []*Message{message}); err != nil {
			return err
		}
	}
	return nil
}

// fail gives the message back; it rests for the queue's retry delay.
func (worker *Worker) fail(batch *Batch, message *Message, err error) error {
	return worker.settle(batch, "release($1, $2::text::uuid[], $3, error => $4)", []*Message{message}, nil, err.Error())
}

// settle ends leases by aq.acknowledge, aq.release or aq.reject, and calls then for each in the same transaction.
func (worker *Worker) settle(batch *Batch, call string, messages []*Message,
	then func(pgx.Tx, *Message) error, more ...any) error {
	for ids := batch.openOf(messages); len(ids) > 0; ids = batch.openOf(messages) {
		var answers map[string]string
		err := worker.database.run(true, func(db *pgx.Conn) error {
			tx, err := db.Begin(always)
			if err != nil {
				return err
			}
			defer tx.Rollback(always)
			if answers, err = batch.ask(tx, call, ids, more...); err != nil {
				return err
			}
			for _, message := range messages {
				if answers[message.msgid] == "done" && then != nil {
					if err := then(tx, message); err != nil {
						return err
					}
				}
			}
			return tx.Commit(always)
		})
		if err != nil {
			return err
		}
		for msgid, answer := range answers {
			if answer == "busy" { // by the heartbeat, or by a transaction that a lost connection has left
				time.Sleep(firstPause / time.Duration(len(answers)))
			} else {
				log(answer, call[:strings.Index(call, "(")], msgid)
				batch.open.Delete(msgid)
			}
		}
	}
	return nil
}

// Heartbeat extends the leases of all workers.
type Heartbeat struct {
	workers  []*Worker
	database Database
}

func (heartbeat *Heartbeat) run() {
	for range time.Tick(time.Duration(lease / 3 * float64(time.Second))) {
		for _, worker := range heartbeat.workers {
			if batch := worker.batch.Load(); batch != nil {
				if err := heartbeat.extend(batch); err != nil {
					log("error", err)
				}
			}
		}
	}
}

func (heartbeat *Heartbeat) extend(batch *Batch) error {
	return heartbeat.database.run(false, func(db *pgx.Conn) error {
		until := now() + lease
		call, ids := "extend($1, $2::text::uuid[], $3, make_interval(secs => $4))", batch.openOf(batch.taken)
		answers, err := batch.ask(db, call, ids, lease)
		if err != nil {
			return err
		}
		for msgid, answer := range answers {
			if answer == "stale" {
				log("stale extend", msgid)
				batch.open.Delete(msgid)
			} else if answer == "done" {
				batch.until.Store(until)
				log("extended", msgid, fmt.Sprintf("%.3f", until))
			}
		}
		return nil
	})
}

func main() {
	waiting := &Waiting{database: Database{url: waitURL}}
	heartbeat := &Heartbeat{database: Database{url: databaseURL}}
	var running sync.WaitGroup
	for i := 0; i < int(workerCount); i++ {
		worker := &Worker{waiting: waiting, database: Database{url: databaseURL}}
		heartbeat.workers = append(heartbeat.workers, worker)
		running.Add(1)
		go func() {
			defer running.Done()
			worker.run()
		}()
	}
	go heartbeat.run()
	log("started")
	<-stopping.Done()
	log("stopping")
	running.Wait()
	log("stopped")
}
