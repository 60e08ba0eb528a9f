// A job worker: Node, node-postgres.
//
//     node worker_node_postgres.js
//
// Copy it, and replace handle(), save() and the settings.  examples/README.md explains the parts, which have the same
// names in every language.

const { Client } = require('pg')
const { setTimeout: sleep } = require('timers/promises')

// through PgBouncer: transaction pooling, and a pool of its own for the connection that waits, see docs/pgbouncer.md
const DATABASE_URL = process.env.DATABASE_URL || 'postgresql:///shop'
const WAIT_URL = process.env.WAIT_URL || DATABASE_URL
const QUEUE = process.env.QUEUE || 'jobs'
const WORKERS = Number(process.env.WORKERS || 4) // each with a connection
const BATCH = Number(process.env.BATCH || 1) // messages that a worker takes at a time
const LEASE = Number(process.env.LEASE || 60) // seconds until a dead worker's messages come back
const FIRST_PAUSE = 100; const LAST_PAUSE = 5000 // milliseconds between attempts to connect, growing

let stopping = false

// The message can never succeed: no more attempts.
class Reject extends Error {}

// Your work, outside of any transaction.  An exception is the message's error: it is tried again later.
async function handle (message) {
  const job = message.payload
  await sleep(1000 * (job.seconds || 0))
  if (job.reject) throw new Reject('no such job')
  if (message.attempts < (job.failures || 0)) throw new Error(`failure ${message.attempts + 1} of ${job.failures}`)
  return 2 * job.n
}

// Your results, in the transaction of the acknowledgement: they are saved exactly once.
async function save (db, message, result) {
  await db.query('INSERT INTO job_result (msgid, attempts, result) VALUES ($1, $2, $3)',
    [message.msgid, message.attempts, result])
}

function log (event, ...details) {
  console.log((Date.now() / 1000).toFixed(3), event, ...details)
}

// Messages that were taken together, until they are settled.
class Batch {
  constructor (receipt, until, messages) {
    this.receipt = receipt
    this.until = until
    this.open = new Map(messages.map(message => [message.msgid, message]))
  }
}

// A connection that is made again when it is lost.
class Database {
  constructor (url) {
    this.url = url
    this.db = null
  }

  async connect () {
    const db = new Client({
      connectionString: this.url,
      application_name: `worker ${process.pid}`,
      connectionTimeoutMillis: 10000,
      keepAlive: true
    })
    const lost = () => { if (this.db === db) this.db = null }
    db.on('error', lost)
    db.on('end', lost)
    await db.connect()
    this.db = db
  }

  // work(connection), again after a lost connection: so it must be safe to repeat.  When the worker stops, only what
  // must be done is tried again.
  async run (work, untilDone = false) {
    for (let pause = FIRST_PAUSE; ; pause = Math.min(2 * pause, LAST_PAUSE)) {
      try {
        if (!this.db) await this.connect()
        return await work(this.db)
      } catch (error) {
        if (error.severity === 'FATAL') await this.close()
        if (this.db || (stopping && !untilDone)) throw error
        log('reconnect', error.message)
      }
      await sleep(pause)
    }
  }

  async close () {
    const db = this.db
    this.db = null
    if (db) await db.end().catch(() => {})
  }
}

// One connection on which a worker waits for messages.  The other workers without messages queue for the turn.
class Waiting {
  constructor () {
    this.turn = Promise.resolve()
    this.database = new Database(WAIT_URL)
  }

  // The next messages, or null when the worker stops.
  take (worker) {
    const mine = this.turn.then(() => this.takeNow(worker))
    this.turn = mine.catch(() => {})
    return mine
  }

  async takeNow (worker) {
    while (!stopping) {
      const batch = await worker.take()
      if (batch) return batch
      if (stopping) break
      try {
        await this.database.run(db => db.query("CALL aq.wait($1, '30 seconds')", [QUEUE]))
      } catch (error) {
        if (!stopping) throw error // otherwise by stop()
      }
    }
    return null
  }

  stop () {
    return this.database.close()
  }
}

class Worker {
  constructor (waiting) {
    this.waiting = waiting
    this.database = new Database(DATABASE_URL)
    this.batch = null
  }

  async run () {
    while (!stopping) {
      try {
        this.batch = await this.waiting.take(this)
        if (this.batch) await this.work(this.batch)
      } catch (error) { // for instance a stopped queue, or a missing privilege
        log('error', error.message)
        if (!stopping) await sleep(LAST_PAUSE)
      }
      this.batch = null
    }
    await this.database.close()
  }

  async take () {
    return this.database.run(async db => {
      const until = Date.now() / 1000 + LEASE
      const taken = await db.query(
        `SELECT receipt, msgid, attempts, payload
         FROM aq.dequeue($1, max_messages => $2, lease => make_interval(secs => $3))`,
        [QUEUE, BATCH, LEASE])
      return taken.rows.length ? new Batch(taken.rows[0].receipt, until, taken.rows) : null
    })
  }

  async work (batch) {
    const results = new Map()
    for (const message of [...batch.open.values()]) {
      if (stopping || Date.now() / 1000 > batch.until) break
      if (!batch.open.has(message.msgid)) continue // the heartbeat has found that the lease is over
      log('begin', message.msgid, message.attempts, batch.until.toFixed(3))
      try {
        results.set(message.msgid, await handle(message))
      } catch (error) {
        if (error instanceof Reject) await this.settle(batch, 'reject', [message.msgid], 'error => $4', [String(error)])
        else await this.fail(batch, message.msgid, error)
      }
    }
    await this.finish(batch, results)
    await this.settle(batch, 'release', [...batch.open.keys()], 'count => $4', [false]) // not begun: given back unseen
  }

  // Saves results and acknowledges their messages.
  async finish (batch, results) {
    try {
      await this.settle(batch, 'acknowledge', [...results.keys()], '', [],
        (db, msgid) => save(db, batch.open.get(msgid), results.get(msgid)))
    } catch (error) { // of save(): for which message?
      for (const [msgid, result] of results) {
        if (results.size > 1) await this.finish(batch, new Map([[msgid, result]]))
        else await this.fail(batch, msgid, error)
      }
    }
  }

  // Gives the message back; it rests for the queue's retry delay.
  async fail (batch, msgid, error) {
    await this.settle(batch, 'release', [msgid], 'error => $4', [String(error)])
  }

  // Ends leases by aq.acknowledge, aq.release or aq.reject, and calls then() for each in the same transaction.
  async settle (batch, how, msgids, option = '', value = [], then = null) {
    const query = `SELECT msgid, result FROM aq.${how}($1, $2, $3${option && ', ' + option})`
    const work = async db => {
      await db.query('BEGIN')
      try {
        const answers = await db.query(query, [QUEUE, msgids, batch.receipt, ...value])
        for (const { msgid, result } of answers.rows) if (result === 'done' && then) await then(db, msgid)
        await db.query('COMMIT')
        return answers.rows
      } catch (error) {
        await db.query('ROLLBACK').catch(() => {})
        throw error
      }
    }

    msgids = msgids.filter(msgid => batch.open.has(msgid))
    while (msgids.length) {
      const busy = []
      for (const { msgid, result } of await this.database.run(work, true)) {
        if (result === 'busy') { // the heartbeat, or a transaction that a lost connection has left
          busy.push(msgid)
        } else {
          log(result, how, msgid)
          batch.open.delete(msgid)
        }
      }
      msgids = busy
      if (busy.length) await sleep(FIRST_PAUSE)
    }
  }
}

// Extends the leases of all workers.
class Heartbeat {
  constructor (workers) {
    this.workers = workers
    this.database = new Database(DATABASE_URL)
    this.stopped = false
  }

  async run () {
    while (!this.stopped) {
      await sleep(1000 * LEASE / 3, null, { ref: false })
      for (const { batch } of this.workers) {
        try {
          if (batch) await this.extend(batch)
        } catch (error) {
          log('error', error.message)
        }
      }
    }
  }

  async extend (batch) {
    let until
    const answers = await this.database.run(db => {
      until = Date.now() / 1000 + LEASE
      return db.query('SELECT msgid, result FROM aq.extend($1, $2, $3, make_interval(secs => $4))',
        [QUEUE, [...batch.open.keys()], batch.receipt, LEASE])
    })
    for (const { msgid, result } of answers.rows) {
      if (result === 'stale') {
        log('stale', 'extend', msgid)
        batch.open.delete(msgid)
      } else if (result === 'done') {
        batch.until = until
        log('extended', msgid, until.toFixed(3))
      }
    }
  }

  stop () {
    this.stopped = true
    return this.database.close()
  }
}

async function main () {
  const waiting = new Waiting()
  const workers = Array.from({ length: WORKERS }, () => new Worker(waiting))
  const running = workers.map(worker => worker.run())
  const heartbeat = new Heartbeat(workers)
  heartbeat.run()
  for (const name of ['SIGTERM', 'SIGINT']) {
    process.on(name, () => {
      log('stopping')
      stopping = true
      waiting.stop()
    })
  }
  log('started')
  await Promise.all(running)
  await heartbeat.stop()
  log('stopped')
}

main()
