#!/bin/bash
# Breaks the protocols in known ways, one at a time; the simulated tests must
# notice each.  A mutant that lives is a fault that the tests would let pass.
#
#	./mutants.sh [name]		one of them, or all
set -u
cd "$(dirname "$0")" || exit 2
seeds=${SEEDS:-2000}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
killed=0
alive=0

# name, file of $part or of one of its folders, a Perl expression that changes the file (whole text in $_)
part=sync
mutant() {
	local name=$1 file change=$3
	[ -n "${only:-}" ] && [ "$only" != "$name" ] && return
	file=$(cd ../../src && find "$part" -name "$2")
	rm -rf "$dir/src" "$dir/build"
	mkdir -p "$dir/src"
	cp -r ../../src/sync ../../src/cache ../../src/shard ../../src/classic "$dir/src/"
	perl -0pi -e "$change" "$dir/src/$file"
	if cmp -s "../../src/$file" "$dir/src/$file"; then
		echo "STALE  $name: changes nothing"
		alive=$((alive + 1))
		return
	fi
	if ! make -s CODE="$dir/src" BUILD="$dir/build" CFLAGS="-std=gnu11 -g -O1 -w" \
		"$dir/build/unit_sim" >"$dir/make.log" 2>&1; then
		echo "STALE  $name: does not compile"
		tail -3 "$dir/make.log"
		alive=$((alive + 1))
		return
	fi
	if timeout 120 "$dir/build/unit_sim" -x -n "$seeds" >"$dir/log" 2>&1; then
		echo "ALIVE  $name"
		alive=$((alive + 1))
	else
		grep -q "^FAILED" "$dir/log" || echo "(no FAILED line: crashed or timed out)"
		echo "killed $name by $(grep -o '^FAILED [a-z_]*' "$dir/log" | sort -u | cut -d' ' -f2 | tr '\n' ' ')"
		killed=$((killed + 1))
	fi
}

only=${1:-}

# latches
mutant no-retest latch.c 's/if \(try_get\(latch, mode, posted\)\)\n\t\t\t\tbreak;//'
mutant retest-unprivileged latch.c 's/if \(try_get\(latch, mode, posted\)\)\n\t\t\t\tbreak/if (try_get(latch, mode, false))\n\t\t\t\tbreak/'
mutant requeue-last latch.c 's/enter_list\(latch, mode, posted\)/enter_list(latch, mode, false)/'
mutant waking-stays-on-requeue latch.c 's/waking = !posted && \(pg_atomic/waking = (pg_atomic/'
mutant no-settle latch.c 's/\t\tsettle\(latch, mode\);//'
mutant no-settle-when-posted latch.c 's/if \(queued \|\| posted\)/if (queued)/'
mutant settle-keeps-waking latch.c 's/else\n\t\twaking = false;\n\tpg_atomic_write/pg_atomic_write/'
mutant settle-stays-listed latch.c 's/\t\tlist_remove\(latch, aq_session_own_number\);\n\telse/\t\t;\n\telse/'
mutant free-posts-nobody latch.c 's/\t\tpost_head\(latch\);\n\t\treturn;/\t\t;/'
mutant every-sharer-posts latch.c 's/last = \(word & W_COUNT\) == 1;/last = true;/'
mutant last-sharer-does-not-post latch.c 's/last = \(word & W_COUNT\) == 1;/last = false;/'
mutant post-in-spite-of-waking latch.c 's/if \(!waking && latch->head >= 0\)/if (latch->head >= 0)/; s/\(word & \(W_WAITERS \| W_WAKING\)\) == W_WAITERS/(word \& W_WAITERS)/'
mutant no-waking-flag latch.c 's/\tif \(waking\)\n\t\tflags \|= W_WAKING;//'
mutant no-waiters-flag latch.c 's/\tif \(latch->head >= 0\)\n\t\tflags \|= W_WAITERS;//'
mutant no-pending-flag latch.c 's/flags \|= W_PENDING;/;/'
mutant pending-for-ever latch.c 's/if \(latch->exclusives > 0 \|\| \(waking && latch->waking_exclusive\)\)/if (latch->exclusives > 0 || latch->waking_exclusive)/'
mutant last-in-first-out latch.c 's/list_insert\(latch, aq_session_own_number, posted\)/list_insert(latch, aq_session_own_number, true)/'
mutant no-cascade latch.c 's/if \(mode == AQ_SHARED && !waking/if (false \&\& !waking/'
mutant cascade-wakes-exclusive latch.c 's/ &&\n\t\t!aq_sync_shared->sleepers\[latch->head\]\.exclusive\)/)/'
mutant early-return-is-a-post latch.c 's/while \(pg_atomic_read_u32\(&me->state\) != AQ_SLEEP_POSTED\);/while (false);/; s/return pg_atomic_read_u32\(&me->state\) == AQ_SLEEP_POSTED;/return true;/'
mutant timed-out-is-posted latch.c 's/return pg_atomic_read_u32\(&me->state\) == AQ_SLEEP_POSTED;/return true;/'
mutant timed-out-is-forgotten latch.c 's/\t\tif \(posted\)\n\t\t\tqueued = false;/\t\tqueued = false;/'
mutant post-without-state latch.c 's/pg_atomic_write_u32\(&sleeper->state, AQ_SLEEP_POSTED\);//'
mutant unlocked-list latch.c 's/while \(pg_atomic_fetch_or_u64\(&latch->word, W_LIST\) & W_LIST\)/while (false)/'
mutant shared-ignores-exclusive latch.c 's/return \(word & W_EXCLUSIVE\) == 0 && \(posted/return (posted/'
mutant exclusive-ignores-sharers latch.c 's/return \(word & W_HELD\) == 0;/return (word & W_EXCLUSIVE) == 0;/'
mutant shared-counter-not-atomic latch.c 's/pg_atomic_fetch_add_u64\(counter, n\);/pg_atomic_write_u64(counter, pg_atomic_read_u64(counter) + n);/'
mutant spin-get-always-counted latch.c 's/if \(sleeps == 0\)\n\t\tcount/count/; s/\telse\n\t\{\n\t\tcount\(&latch->sleeps/\t{\n\t\tcount(&latch->sleeps/'
mutant interrupts-left-off latch.c 's/\tRESUME_INTERRUPTS\(\);\n\tcount_miss\(&latch->immediate/\tcount_miss(\&latch->immediate/'
mutant levels-not-checked latch.c 's/Assert\(latch_rows\[[^;]*;/(void) held;/'
mutant registered-twice latch.c 's/if \(latch->magic == LATCH_MAGIC && latch->id == id\)/if (false)/'
mutant exclusives-not-counted-down latch.c 's/latch->exclusives -= sleeper->exclusive;//'
mutant held-forgets-first held.c 's/aq_held_count\(\) - 1; i >= 0; i--/aq_held_count() - 1; i > 0; i--/'
mutant held-last-is-anything held.h 's/ && aq_lock_address\(pg_atomic_read_u64\(&last->lock\)\) == lock\) \?/) ?/'
mutant class-ignored latch.c 's/aq_latch_classes\[aq_latch_class\[latch->id\]\]/aq_latch_classes[0]/'
mutant class-without-number latch.c 's/class->spin >= 0 \? class->spin : aq_latch_spin_count/class->spin/'
mutant class-of-all latch.c 's/aq_latch_class\[latch->id\]\]/aq_latch_class[AQ_LATCH_QUEUE]]/'
mutant class-never-timed latch.c 's/if \(class->timed\)/if (false)/'
mutant class-one-sleep latch.c 's/Min\(n, AQ_CLASS_SLEEPS - 1\)/0/'
mutant class-no-yields latch.c 's/for \(int yields = class->yields;; yields--\)/for (int yields = 0;; yields--)/'
mutant class-one-yield-more latch.c 's/if \(yields <= 0\)/if (yields < 0)/'
mutant shared-spins-once latch.c 's/polls \*= 2;/;/'

mutant long-hold-always latch.c 's/if \(aq_latch_gets\(latch\) == got_before\)/if (true)/'
mutant long-hold-never latch.c 's/if \(aq_latch_gets\(latch\) == got_before\)/if (false)/'
mutant holding-not-seen latch.c 's/if \(holds_a_latch\(\)\)/if (false)/'
mutant woken-not-counted latch.c 's/aq_own_add\(&latch->woken, 1\);//'
mutant wants-forever latch.c 's/\t\tpg_atomic_write_u64\(&aq_sync_self->wants, 0\);//'
mutant blocker-forgets-sharers locks.c 's/if \(i != session && aq_held_by\(i, lock\) != NULL\)/if (false)/'

mutant gets-lose-a-half latch.c 's/count\(&latch->halves, mode, 1\);/;/'
mutant gets-jump-back latch.c 's/\t\thalves\+\+;/\t\t;/'

# mutexes
mutant mutex-exclusive-over-references mutex.c 's/ && \(mode != AQ_EXCLUSIVE \|\| word << \(64 - GETS_SHIFT\) == 0\)//'
mutant mutex-shared-over-owner mutex.c 's/return owner_of\(word\) == 0 &&/return (mode == AQ_SHARED || owner_of(word) == 0) \&\&/'
mutant mutex-examine-over-owner mutex.c 's/return owner_of\(word\) == 0 &&/return (mode == AQ_EXAMINE || owner_of(word) == 0) \&\&/'
mutant mutex-free-drops-count mutex.c 's/pg_atomic_fetch_sub_u64\(&mutex->word, shared \? COUNT_ONE : own_owner\(\)\);/pg_atomic_write_u64(\&mutex->word, 0);/'
mutant mutex-depth-ignored mutex.c 's/held->again > 0 \|\| aq_traced/aq_traced/; s/if \(held->again > 0\)/if (false)/'
mutant mutex-gets-uncounted mutex.c 's/word \+ grant \+ ONE_GET/word + grant/'
mutant mutex-gets-lose-a-half mutex.c 's/pg_atomic_fetch_add_u64\(&mutex->halves, 1\);/;/'
mutant mutex-gets-twice mutex.c 's/books->gets \+ 1/books->gets + 2/'
mutant mutex-sum-forgets-one mutex.c 's/for \(int i = 0; i < aq_sync_shared->nsleepers; i\+\+\)/for (int i = 1; i < aq_sync_shared->nsleepers; i++)/'
mutant mutex-wait-per-step mutex.c 's/\taq_mutex_wait_step\(&scheme/\taq_event_begin(0, 0, 0, 0), aq_event_end(), aq_mutex_wait_step(\&scheme/'
mutant scheme-0-freq mutex_wait.c 's/k % freq == 0\)/k % (freq + 1) == 0)/'
mutant scheme-0-one-freq mutex_wait.c 's/sleeps \? aq_mutex_wait_yield_yield_freq : aq_mutex_wait_yield_sleep_freq/aq_mutex_wait_yield_sleep_freq/'
mutant scheme-0-mode mutex_wait.c 's/bool\t\tsleeps = \(mode == AQ_YIELD_MODE_SLEEP\);/bool sleeps = false;/'
mutant scheme-0-priority mutex_wait.c 's/aq_mutex_wait_high_priority \? aq_mutex_wait_yield_hp_mode : aq_mutex_wait_yield_mode/aq_mutex_wait_yield_mode/'
mutant scheme-0-never-sleeps mutex_wait.c 's/aq_os_poll_ms\(aq_mutex_wait_yield_sleep_time\);/aq_os_yield();/'
mutant scheme-1-no-yield mutex_wait.c 's/else if \(k == 1\)/else if (k == 0)/'
mutant scheme-1-zero mutex_wait.c 's/if \(way->time == 0\)\n/if (false)\n/'
mutant scheme-2-one-yield mutex_wait.c 's/if \(k <= 2\)/if (k <= 1)/'
mutant scheme-2-no-cap mutex_wait.c 's/Min\(ms, cap\)/ms/'
mutant scheme-2-cap-unit mutex_wait.c 's/time \* 10;/time;/'
mutant scheme-2-constant mutex_wait.c 's/pair = \(k - 3\) \/ 2;/pair = 0;/'
mutant scheme-other-timed mutex_wait.c 's/way->scheme <= 2;/true;/'
mutant scheme-of-all-types mutex_wait.c 's/&aq_mutex_wait_ways\[type\]/\&aq_mutex_wait_ways[0]/'
mutant scheme-type-ignored mutex_wait.c 's/own->scheme >= 0 \? own->scheme : //'
mutant scheme-other-yields mutex_wait.c 's/STEPS\t65536/STEPS\t65535/'

mutant scheme-0-freq-zero mutex_wait.c 's/freq > 0 && k/k/'

# lists of waiters
mutant wakeup-lifo wakeup.c 's/unlink_entry\(pool, list, entry\);\n\t\tentry->state = AQ_WAKEUP_WOKEN;/entry = \&pool->entries[list->tail]; unlink_entry(pool, list, entry);\n\t\tentry->state = AQ_WAKEUP_WOKEN;/'
mutant wakeup-one-too-many wakeup.c 's/popped < n && list/popped <= n \&\& list/'
mutant wakeup-woken-forgotten wakeup.c 's/return woken;/return false;/'
mutant wakeup-leak wakeup.c 's/\tpool->free = index;\n\treturn woken/\treturn woken/'
mutant wakeup-tail-lost wakeup.c 's/list->tail = entry->prev;/;/'
mutant hist-off-by-one hist.h 's/64 - __builtin_clzll/63 - __builtin_clzll/'

# the object cache
part=cache
mutant load-twice object.c 's/object->state = AQ_OBJECT_LOADING;//'
mutant pin-while-loading object.c 's/if \(object->state != AQ_OBJECT_VALID\)\n\t\treturn MET_BUSY;//'
mutant failed-load-is-valid object.c 's/success \? AQ_OBJECT_VALID : AQ_OBJECT_DROPPED/AQ_OBJECT_VALID/'
mutant failed-load-stays object.c 's/if \(!success\)\n\t\t\taq_handle_leave\(bucket, object\);//'
mutant load-tells-nobody object.c 's/(aq_claim_end\(fail_load, object\);\n\taq_mutex_free\(&object->mutex\);\n\taq_mutex_free\(&bucket->mutex\);\n\t)aq_cond_broadcast/$1(void) /'
mutant drop-frees-what-is-pinned object.c 's/last = object->pins == 0 && object->pin_holder < 0;/last = true;/'
mutant drop-frees-what-is-loading object.c 's/last = object->pins == 0 && object->pin_holder < 0;/last = object->pins == 0;/'
mutant last-unpin-frees-nothing object.c 's/last = unused && object->state == AQ_OBJECT_DROPPED && object->pin_holder < 0;/last = false;/'
mutant exclusive-over-exclusive object.c 's/got = object->locks == 0 && object->lock_holder < 0;/got = object->locks == 0;/'
mutant exclusive-over-share object.c 's/got = object->locks == 0 && object->lock_holder < 0;/got = object->lock_holder < 0;/'
mutant share-over-exclusive object.c 's/free = !is_locked_by_others\(object\);/free = true;/'
mutant unlock-tells-nobody object.c 's/aq_mutex_free\(&object->mutex\);\n\t\taq_cond_broadcast\(&object->changed\);/aq_mutex_free(\&object->mutex);/'
mutant waiter-stays-counted object.c 's/if \(got && counted\)/if (false)/'
mutant fresh-handle-is-lost object.c 's/if \(fresh != NULL\)\n\t\t\taq_handle_give\(fresh\);//'
mutant pin-bit-stays object.c 's/clear_hold\(object, AQ_HOLD_PIN\);/;/'
mutant check-ignores-serial object.c 's/return object->serial == serial && /return /'
mutant copies-stay object.c 's/drop_one\(database, id, 0\)\);/(drop_one(database, id, 0), 0));/'
mutant ages-what-is-pinned handle.c 's/object->pins == 0 && object->locks == 0/object->locks == 0/'
mutant ages-what-is-not-idle handle.c 's/\(idle && !dropped\)/(!dropped)/'
mutant not-idle-tells-nobody handle.c 's/(aq_mutex_free\(&bucket->mutex\);\n\t)aq_cond_broadcast\(&object->changed\);/$1/'
mutant dropped-while-aging-is-lost handle.c 's/if \(!idle && !dropped\)/if (!idle || dropped)/'
mutant serial-stays handle.c 's/object->serial\+\+;//'
mutant null-locks-stay handle.c 's/memset\(aq_handle_hold_words[^;]*;//'
mutant copy-frees-the-value handle.c 's/if \(object->copy != 0\)/if (false)/'
mutant copy-without-pin hot.c 's/if \(master->pins\+\+ == 0\)/if (master->pins == 0)/'
mutant copies-of-a-dropped-one hot.c 's/if \(!announce\(master, copies\)\)/if (!announce(master, copies) \&\& false)/'
mutant unmarked-copies-stay hot.c 's/aq_object_drop_copies\(master->database, master->id, copies\);\n\taq_mutex/aq_mutex/'

# the dictionary cache
mutant row-of-another-key row.c 's/ &&\n\t\t\tmemcmp\(&rows\[i\]\.key, key, sizeof\(AqRowKey\)\) == 0//'
mutant row-pin-ignores-serial row.c 's/same = row->live && row->serial == serial;/same = row->live;/'
mutant row-not-pinned row.c 's/row->pins\+\+;\n//; s/--row->pins == 0 && !row->live/false/'
mutant row-never-given-back row.c 's/if \(last\)\n\t\tgive_row\(row\);//'
mutant row-freed-while-pinned row.c 's/\*is_free = row->pins == 0;/*is_free = true;/; s/--row->pins == 0 && !row->live/row->pins-- == 99/'
mutant row-evicted-while-pinned row.c 's/ && !\(unpinned_only && row->pins > 0\)//'
mutant row-taken-out-twice row.c 's/if \(row->live && row->serial == serial && !\(unp/if (row->live \&\& !(unp/'
mutant row-gets-go-with-it row.c 's/pg_atomic_fetch_add_u64\(&cache->gets, row->gets\);//'
mutant row-use-not-marked row.c 's/\t\trow->used = true;\n//'
mutant row-second-chance-never row.c 's/if \(next->used\)/if (false)/'
mutant row-highest-stays row.c 's/pg_atomic_write_u32\(&area->highest, area->free\);//'
mutant row-highest-read-first row.c 's/(\thighest = pg_atomic_read[^\n]*\n)//; s/(\tuint32\t\thighest);/$1 = pg_atomic_read_u32(\&area->highest);/'
mutant row-entered-late row.c 's/pg_atomic_read_u32\(&cache->generation\) == generation &&/true \&\&/'
mutant row-entered-twice row.c 's/ &&\n\t\trow_in_bucket\(bucket, hash, id, key, clone\) == NULL;/;/'
mutant row-entered-unprotected row.c 's/aq_mutex_get\(&row->mutex, AQ_EXCLUSIVE, AQ_LOC_ROW_ENTER\);//; s/aq_mutex_free\(&row->mutex\);(\n\taq_mutex_free\(&bucket->mutex\);\n\tif \(!entered)/$1/'
mutant row-not-entered-is-lost row.c 's/if \(!entered\)\n\t\tgive_row\(row\);//'
mutant row-generation-stays row.c 's/pg_atomic_fetch_add_u32\(&area->caches\[i\]\.generation, 1\);/;/'
mutant row-generation-raised-last row.c 's/(\tfor \(int i = 0; i < AQ_ROW_CACHES; i\+\+\)\n\t\tpg_atomic_fetch_add_u32[^\n]*\n)(.*?)(\n\}\n\nvoid\naq_row_relation)/$2\n$1$3/s'
mutant row-generation-read-late row.c 's/(\tgeneration = pg_atomic_read_u32\(&cache->generation\);\n)(.*?)(\taq_point\("row-loaded"\);\n)/$2$3$1/s'
mutant row-read-not-marked row.c 's/\tmark_read\(key->relation\);//'
mutant row-server-not-heard row.c 's/\tAcceptInvalidationMessages\(\);//'
mutant row-flush-takes-all row.c 's/matches = row->live && \([^;]*;/matches = row->live;/'
mutant row-flush-leaks row.c 's/if \(is_free\)\n\t\t\tgive_row\(row\);//'
mutant row-flush-not-at-commit row.c 's/if \(event == XACT_EVENT_COMMIT\)\n\t\tflush_own\(\);//'
mutant row-flush-at-commit-only row.c 's/if \(commit\)\n\t\tflush_own\(\);//'
mutant row-own-from-the-cache row.c 's/if \(is_own\(key->relation\) \|\|/if (/'
mutant row-own-stays row.c 's/any_own = false;\n\tmemset\(own, 0, sizeof\(own\)\);//'
mutant row-own-ends-with-a-subtransaction row.c 's/ \|\| !top//'
mutant row-own-of-others row.c 's/if \(!TransactionIdIsValid\(GetTopTransactionIdIfAny\(\)\)\)\n\t\treturn;//'
mutant row-kept-on-a-standby row.c 's/ \|\| RecoveryInProgress\(\)//'
mutant row-too-long row.c 's/if \(length < AQ_ROW_VALUE\)/if (true)/; s/memcpy\(row->value, value, Max\(length, 0\)\);/memcpy(row->value, value, Min(Max(length, 0), AQ_ROW_VALUE));/'
mutant row-missing-not-kept row.c 's/if \(length < AQ_ROW_VALUE\)/if (length >= 0 \&\& length < AQ_ROW_VALUE)/'
mutant row-step-forgets-the-latch row.c 's/if \(latched\)\n\t\taq_latch_free/if (aq_row_serialization == BY_LATCH)\n\t\taq_latch_free/'
mutant row-clone-too-early row.c 's/sleeps - row->sleeps_before >= /sleeps - row->sleeps_before + 1 >= /'
mutant row-clone-for-former-sleeps row.c 's/sleeps - row->sleeps_before >= /sleeps >= /'
mutant row-clone-of-all row.c 's/1 \+ aq_session_own_number % aq_hot_copies_wanted\(\)/1/'
mutant row-clone-not-looked-for row.c 's/pg_atomic_fetch_or_u64\(&cache->cloned, clone_bit\(key\)\);//'
mutant row-clone-old row.c 's/enter\(id, key, own_clone\(\), value, length, generation\);/enter(id, key, own_clone(), value, length, pg_atomic_read_u32(\&cache->generation));/'
mutant row-clone-during-a-flush row.c 's/ &&\n\t\tpg_atomic_read_u32\(&area->flushing\) == 0//'
mutant row-misses-uncounted row.c 's/(\tpg_atomic_fetch_add_u64\(&cache->gets, 1\);\n)\tpg_atomic_fetch_add_u64\(&cache->misses, 1\);\n\tlength/$1\tlength/'

# slots
part=shard
mutant slot-pending-stays slot.c 's/partition->pending -= n;/;/'
mutant slot-open-by-consumers slot.c 's/npositions \* n;/npositions;/'
mutant slot-ready-stays-counted slot.c 's/ssub->ready--;//'
mutant slot-taken-keeps-its-bit slot.c 's/\(void\) aq_bitmap_clear\(bitmap_of\(sub->ready\), number\);//'
mutant slot-first-stays slot.c 's/if \(first < sub->first\)\n\t\tsub->first = first;//'
mutant slot-hint-stays slot.c 's/ssub->hint = partition->index;/;/'
mutant slot-hint-of-unlinked slot.c 's/ssub->hint = partition->next;/;/'
mutant slot-ready-looks-empty slot.c 's/(look_at\(Stream.*?)aq_slot_stream_not_empty\(stream, position\);/$1/s'
mutant slot-doubt-looks-empty slot.c 's/(count_doubt\(stream_sub\(stream, position\), 1\);\n)\t\taq_slot_stream_not_empty\(stream, position\);/$1/'
mutant slot-looks-at-one slot.c 's/(partition != NULL; partition = )partition_at\(partition->next\)/$1NULL/'
mutant slot-waiting-stays-counted slot.c 's/sub->nwaiting--;//'
mutant slot-doubt-not-announced slot.c 's/ssub->doubt_change = [^;]*;//'
mutant slot-doubt-resolved-keeps-its-bit slot.c 's/\(void\) aq_bitmap_clear\(bitmap_of\(sub->doubt\), number\);//'
mutant slot-fails-twice slot.c 's/if \(slot->flags & SLOT_FAILED\)\n\t\treturn;//'
mutant slot-moved-stays-open slot.c 's/(partition->nfailed--;\n)\tpartition->open--;/$1/'
mutant slot-done-for-all slot.c 's/if \(slot->open > 0\)\n\t\t\tcontinue;//'
mutant slot-done-says-nothing slot.c 's/move \|= [^;]*;//'
mutant slot-away-without-waiting slot.c 's/(ssub->away \+= sub->nready) \+ sub->nwaiting;/$1;/'
mutant slot-away-waiting-once slot.c 's/away_waiting \+= sub->nwaiting;/away_waiting = sub->nwaiting;/'
mutant slot-away-head-of-the-last slot.c 's/if \(number >= partition->away_head\)\n\t\treturn;//'
mutant slot-counted-not-taken slot.c 's/(partition->nretry--;\n)\tadd_taken\(partition, position\);/$1/'
mutant slot-retry-not-counted slot.c 's/\t\tpartition->nretry\+\+;//'
mutant slot-retry-stays-taken slot.c 's/(VIEW_RETRY\)\);\n)\tremove_taken\(partition, position\);/$1/'
mutant slot-delayed-comes-back-ready slot.c 's/if \(waits\)\n\t\tset_waiting/if (false)\n\t\tset_waiting/'
mutant slot-retry-stays-in-work slot.c 's/(VIEW_RETRY\)\);\n\tremove_taken\(partition, position\);\n)\tend_work[^;]*;/$1/'
mutant slot-given-back-in-work slot.c 's/(VIEW_READY\)\);\n\tremove_taken\(partition, position\);\n)\tend_work[^;]*;/$1/'
mutant slot-delayed-in-work slot.c 's/(VIEW_WAITING\)\);\n\tremove_taken\(partition, position\);\n)\tend_work[^;]*;/$1/'
mutant slot-finished-one-in-work slot.c 's/end_work\(partition, position, n\)/end_work(partition, position, 1)/'
mutant slot-counted-not-in-work slot.c 's/(partition->nretry--;\n\tadd_taken\(partition, position\);\n)\tbegin_work[^;]*;/$1/'
mutant slot-place-not-used slot.c 's/aq_places_got--;/;/'
mutant slot-doubt-not-taken slot.c 's/frame_sub\(frame_of\(partition\), position\)->ntaken\+\+;\n\t\}/}/'
mutant slot-follower-for-ever slot.c 's/slot->flags &= ~SLOT_FOLLOWER;//'
mutant slot-epoch-stays slot.h 's/slot->epoch = [^;]*;/slot->epoch = near >> 32;/'
mutant slot-evicted-stays-counted slot.c 's/ssub->ready -= sub->nready;//'
mutant slot-session-forgotten slot.c 's/partition->more_sessions = true;//'
mutant slot-reset-keeps-doubts slot.c 's/partition->ndoubt = partition/partition/'
mutant slot-state-not-checked slot.c 's/Assert\(allowed[^;]*;//'
mutant slot-view-not-checked slot.c 's/(aq_slot_give_back.*?)Assert\(may_step[^;]*;/$1/s'
mutant slot-doubt-cannot-be-published slot.h 's/(X\(PUBLISH, .*?) \| SLOT_IN\(DOUBT\),/$1,/'
mutant slot-waiting-cannot-be-taken slot.h 's/(X\(TAKE, .*?) \| VIEW_IN\(WAITING\),/$1,/'

# sets of ids
part=classic
mutant xids-end-is-lost xids.c 's/(xids->ranges\[i\]\.last\)\)\n\t\t)xids->ranges\[i\]\.last = last;/$1;/'

echo "$killed killed, $alive alive"
[ "$alive" -eq 0 ] && [ "$killed" -gt 0 ]
