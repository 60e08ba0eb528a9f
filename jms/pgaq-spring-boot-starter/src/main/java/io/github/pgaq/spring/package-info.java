/**
 * pgaq in applications of Spring: a connection factory that joins the transactions of a DataSource, and its
 * auto-configuration by Spring Boot.
 */
package io.github.pgaq.spring;
