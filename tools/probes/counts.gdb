# counts.gdb: what the next statement of one session gets and gives back.
#
#	gdb -q -batch -p PID -x tools/probes/counts.gdb
#
# Then run a statement in that session.  The counters are in the breakpoints' conditions, which are
# never true, so the session continues by itself; it stops when the server is ready for its next statement.
set pagination off
set confirm off
handle SIGUSR1 SIGUSR2 SIGALRM noprint nostop pass
set $latch = 0
set $latch_free = 0
set $mutex = 0
set $mutex_release = 0
set $waits = 0
set $published = 0
set $woken = 0
break -probe-stap pgaq:latch__get
condition $bpnum ($latch = $latch + 1) < 0
break -probe-stap pgaq:latch__free
condition $bpnum ($latch_free = $latch_free + 1) < 0
break -probe-stap pgaq:mutex__get
condition $bpnum ($mutex = $mutex + 1) < 0
break -probe-stap pgaq:mutex__release
condition $bpnum ($mutex_release = $mutex_release + 1) < 0
break -probe-stap pgaq:wait__start
condition $bpnum ($waits = $waits + 1) < 0
break -probe-stap pgaq:publish
condition $bpnum ($published = $published + $_probe_arg2) < 0
break -probe-stap pgaq:wakeup
condition $bpnum ($woken = $woken + 1) < 0
tbreak ReadyForQuery
printf "ready\n"
continue
printf "===== Operations: %d-Counter: [ LATCH: %d/%d, MUTEX: %d/%d ], waits %d, messages published %d, sessions woken %d =====\n", \
	$latch + $latch_free + $mutex + $mutex_release, $latch, $latch_free, $mutex, $mutex_release, $waits, $published, $woken
detach
