/**
 * Message selectors: their grammar, their evaluation in Java, and their translation to a condition of the server.
 */
package io.github.pgaq.jms.selector;
