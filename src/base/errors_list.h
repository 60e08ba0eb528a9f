/*
 * errors_list.h
 *	  Every error of pgaq: X(id, sqlstate, Oracle's number or 0, what it means).
 *
 * The C enum, the SQLSTATE and the table in docs/errors.md come from this list.
 * No guard: it is included more than once.
 */
X(QUEUE_UNDEFINED, "AQ001", 24010, "The queue does not exist, or the session has no right to it.")
X(QUEUE_EXISTS, "AQ002", 24006, "A queue of this name exists already.")
X(NAME_INVALID, "AQ003", 24000, "A queue or consumer name is empty, too long or reserved.")
X(ARGUMENT_NULL, "AQ004", 24031, "A required argument is null.")
X(OPTION_INVALID, "AQ005", 0, "An option has a value outside its range, or options contradict each other.")
X(ENQUEUE_DISABLED, "AQ006", 25207, "The queue is stopped for enqueue.")
X(DEQUEUE_DISABLED, "AQ007", 25226, "The queue is stopped for dequeue.")
X(PAYLOAD_TYPE, "AQ008", 25215, "The payload's type is not the queue's payload type.")
X(CONSUMER_MISSING, "AQ009", 25231, "A queue with several consumers needs the consumer's name.")
X(CONSUMER_FORBIDDEN, "AQ010", 24039, "Consumers, subscribers and recipients need a queue with multiple_consumers.")
X(NO_RECIPIENTS, "AQ011", 24033, "No recipient was named and no subscriber's rule is true for the message.")
X(RECIPIENT_INVALID, "AQ012", 25232, "The recipient list names nobody, somebody twice, or too many.")
X(SUBSCRIBER_EXISTS, "AQ013", 24034, "The consumer is already a subscriber of the queue.")
X(SUBSCRIBER_UNDEFINED, "AQ014", 24035, "The consumer is not a subscriber of the queue.")
X(SUBSCRIBER_LIMIT, "AQ015", 24067, "The queue has as many subscribers as it can have.")
X(QUEUE_NOT_EMPTY, "AQ016", 24011, "The queue still holds messages and force was not given.")
X(MESSAGE_UNDEFINED, "AQ017", 25263, "No message with this id is available to the consumer.")
X(RULE_INVALID, "AQ018", 0, "A rule or condition could not be understood.")
X(LISTEN_ARGUMENT, "AQ019", 25245, "The lists given to listen do not fit together.")
X(PRIORITY_INVALID, "AQ020", 0, "The priority is outside 0 to 9.")
X(DELAY_INVALID, "AQ021", 25203, "The delay is negative, or too long.")
X(EXPIRATION_INVALID, "AQ022", 25209, "The expiration is not positive, or too long.")
X(PREPARE_WITH_DDL, "AQ023", 0, "PREPARE TRANSACTION after queue definitions were changed in the transaction.")
X(CACHE_FULL, "AQ024", 0, "Shared memory of pgaq is used up; a parameter must be raised.")
X(NOT_PRELOADED, "AQ025", 0, "pgaq is not in shared_preload_libraries.")
X(WORKER_MISSING, "AQ026", 0, "The background worker could not be started.")
X(PRIVILEGE_INVALID, "AQ027", 24066, "The privilege is not enqueue, dequeue or all.")
X(EXCEPTION_QUEUE, "AQ028", 0, "The exception queue is missing or does not fit.")
