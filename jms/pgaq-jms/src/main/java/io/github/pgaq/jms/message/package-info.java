/**
 * The five kinds of messages, their headers, properties and conversions, and their form in the database.
 *
 * <p>{@link io.github.pgaq.jms.message.Messages} makes all messages. Programs use the {@code jakarta.jms} interfaces.
 */
package io.github.pgaq.jms.message;
