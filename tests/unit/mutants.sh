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

# name, file, a Perl expression that changes the file (whole text in $_)
mutant() {
	local name=$1 file=$2 change=$3
	[ -n "${only:-}" ] && [ "$only" != "$name" ] && return
	rm -rf "$dir/src" "$dir/build"
	mkdir -p "$dir/src"
	cp -r ../../src/sync "$dir/src/"
	perl -0pi -e "$change" "$dir/src/sync/$file"
	if cmp -s "../../src/sync/$file" "$dir/src/sync/$file"; then
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
mutant no-retest latch.c 's/if \(try_get\(latch, mode, sleeps > 0, pg_atomic_read_u32\(&latch->word\)\)\)\n\t\t\tbreak;//'
mutant retest-unprivileged latch.c 's/if \(try_get\(latch, mode, sleeps > 0, pg_atomic_read/if (try_get(latch, mode, false, pg_atomic_read/'
mutant requeue-last latch.c 's/enter_list\(latch, mode, sleeps > 0\)/enter_list(latch, mode, false)/'
mutant waking-stays-on-requeue latch.c 's/waking = !posted && \(pg_atomic/waking = (pg_atomic/'
mutant no-settle latch.c 's/if \(listed\)\n\t\tsettle\(latch, mode\);//'
mutant settle-keeps-waking latch.c 's/else\n\t\twaking = false;\n\tpg_atomic_write/pg_atomic_write/'
mutant settle-stays-listed latch.c 's/\t\tlist_remove\(latch, aq_session_own_number\);\n\telse/\t\t;\n\telse/'
mutant free-posts-nobody latch.c 's/\t\tpost_head\(latch\);\n\tRESUME/\t\t;\n\tRESUME/'
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
mutant early-return-is-a-post latch.c 's/while \(pg_atomic_read_u32\(&me->state\) != AQ_SLEEP_POSTED\);/while (false);/'
mutant post-without-state latch.c 's/pg_atomic_write_u32\(&sleeper->state, AQ_SLEEP_POSTED\);//'
mutant unlocked-list latch.c 's/while \(pg_atomic_fetch_or_u32\(&latch->word, W_LIST\) & W_LIST\)/while (false)/'
mutant shared-ignores-exclusive latch.c 's/return \(word & W_EXCLUSIVE\) == 0 && \(posted/return (posted/'
mutant exclusive-ignores-sharers latch.c 's/return \(word & W_HELD\) == 0;/return (word & W_EXCLUSIVE) == 0;/'
mutant shared-counter-not-atomic latch.c 's/pg_atomic_fetch_add_u64\(counter, n\);/pg_atomic_write_u64(counter, pg_atomic_read_u64(counter) + n);/'
mutant spin-get-always-counted latch.c 's/if \(sleeps == 0\)\n\t\tcount/count/; s/\telse\n\t\{\n\t\tcount\(&latch->sleeps/\t{\n\t\tcount(&latch->sleeps/'
mutant interrupts-left-off latch.c 's/\t\tRESUME_INTERRUPTS\(\);\n\t\tpg_atomic_fetch_add_u64\(&latch->immediate/\t\tpg_atomic_fetch_add_u64(&latch->immediate/'
mutant levels-not-checked latch.c 's/Assert\(aq_latch_level\(held->lock\) < aq_latch_level\(latch\)\);/(void) held;/'
mutant registered-twice latch.c 's/if \(latch->magic == LATCH_MAGIC && latch->id == id\)/if (false)/'
mutant exclusives-not-counted-down latch.c 's/latch->exclusives -= sleeper->exclusive;//'
mutant held-forgets-order held.c 's/nheld - 1; i >= 0; i--/nheld - 2; i >= 0; i--/'
mutant class-ignored latch.c 's/if \(class > 0 && /if (false \&\& /'
mutant class-without-number latch.c 's/ && aq_latch_class_spin\[class\] >= 0//'
mutant shared-spins-once latch.c 's/polls \*= 2;/;/'

# mutexes
mutant mutex-exclusive-over-references mutex.c 's/return word == 0;/return (word \& ~COUNT_MASK) == 0;/'
mutant mutex-shared-over-owner mutex.c 's/\*result = word \+ 1;\n\t\t\treturn \(word & ~COUNT_MASK\) == 0;/*result = word + 1;\n\t\t\treturn true;/'
mutant mutex-examine-over-owner mutex.c 's/\*result = word \| own_owner\(\);\n\t\t\treturn \(word & ~COUNT_MASK\) == 0;/*result = word | own_owner();\n\t\t\treturn true;/'
mutant mutex-free-drops-count mutex.c 's/pg_atomic_fetch_sub_u64\(&mutex->word, held->mode == AQ_SHARED \? 1 : own_owner\(\)\);/pg_atomic_write_u64(\&mutex->word, 0);/'
mutant mutex-depth-ignored mutex.c 's/if \(--held->depth == 0\)/held->depth--;/'
mutant mutex-gets-not-atomic mutex.c 's/if \(mode == AQ_EXCLUSIVE\)\n\t\tpg_atomic_write/if (true)\n\t\tpg_atomic_write/'
mutant mutex-gets-twice mutex.c 's/\tcount_get\(mutex, mode\);\n\taq_held_push/\tcount_get(mutex, mode);\n\tcount_get(mutex, mode);\n\taq_held_push/'
mutant mutex-wait-per-step mutex.c 's/\tdo\n\t\taq_scheme_step/\tdo\n\t\taq_wait_begin(0, 0, 0, 0), aq_wait_end(), aq_scheme_step/'
mutant scheme-0-freq scheme.c 's/k % aq_wait_yield_sleep_freq == 0\)/k % (aq_wait_yield_sleep_freq + 1) == 0)/'
mutant scheme-0-never-sleeps scheme.c 's/aq_os_poll_ms\(aq_wait_yield_sleep_time\);/aq_os_yield();/'
mutant scheme-1-no-yield scheme.c 's/else if \(k == 1\)/else if (k == 0)/'
mutant scheme-1-zero scheme.c 's/if \(aq_mutex_wait_time == 0\)\n/if (false)\n/'
mutant scheme-2-one-yield scheme.c 's/if \(k <= 2\)/if (k <= 1)/'
mutant scheme-2-no-cap scheme.c 's/Min\(ms, cap\)/ms/'
mutant scheme-2-cap-unit scheme.c 's/aq_mutex_wait_time \* 10;/aq_mutex_wait_time;/'
mutant scheme-2-constant scheme.c 's/pair = \(k - 3\) \/ 2;/pair = 0;/'
mutant scheme-other-timed scheme.c 's/aq_mutex_wait_scheme <= 2\);/true);/'
mutant scheme-other-yields scheme.c 's/STEPS\t65536/STEPS\t65535/'

mutant scheme-0-freq-zero scheme.c 's/aq_wait_yield_sleep_freq > 0 && k/k/'

# lists of waiters
mutant wakeup-lifo wakeup.c 's/unlink_entry\(pool, list, entry\);\n\t\tentry->state = AQ_WAKEUP_WOKEN;/entry = \&pool->entries[list->tail]; unlink_entry(pool, list, entry);\n\t\tentry->state = AQ_WAKEUP_WOKEN;/'
mutant wakeup-one-too-many wakeup.c 's/popped < n && list/popped <= n \&\& list/'
mutant wakeup-woken-forgotten wakeup.c 's/return woken;/return false;/'
mutant wakeup-leak wakeup.c 's/\tpool->free = index;\n\treturn woken/\treturn woken/'
mutant wakeup-tail-lost wakeup.c 's/list->tail = entry->prev;/;/'
mutant hist-off-by-one hist.h 's/64 - __builtin_clzll/63 - __builtin_clzll/'

echo "$killed killed, $alive alive"
[ "$alive" -eq 0 ] && [ "$killed" -gt 0 ]
