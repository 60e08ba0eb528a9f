package io.github.pgaq.jms.conformance;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * The sections of the Jakarta Messaging 3.1 specification that a test checks, for example {@code @Spec("8.7")}.
 * Sections that begin with "api:" name a class of the API, where only its Javadoc makes the claim. On a class: the
 * section of each test without an annotation of its own.
 */
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.METHOD, ElementType.TYPE})
public @interface Spec {
    String[] value();
}
