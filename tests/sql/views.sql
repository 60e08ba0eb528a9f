-- The views of schema aq: what they say about queues in a known state.
\pset null null
SELECT aq.create_queue('v_dead');
SELECT aq.create_queue('v', max_retries => 5, exception_queue => 'v_dead', comment => 'a queue');
SELECT aq.create_queue('v_topic', multiple_consumers => true, shards => 2);
