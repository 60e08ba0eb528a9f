/**
 * The five kinds of messages, their headers, properties and conversions, and their form in the database.
 *
 * <p>{@link io.github.pgaq.jms.message.Messages} makes all messages. Programs use those of {@code jakarta.jms}.
 */
package io.github.pgaq.jms.message;
