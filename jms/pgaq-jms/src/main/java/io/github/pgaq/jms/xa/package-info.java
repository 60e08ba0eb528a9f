/** Sessions that are part of distributed transactions. */
package io.github.pgaq.jms.xa;
