package io.github.pgaq.jms.selector;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.pgaq.jms.message.PgaqMessage;
import jakarta.jms.JMSException;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Evaluation in Java. */
class EvaluatorTest {

    static Iterable<Truths.Row> rows() {
        return Truths.rows();
    }

    @ParameterizedTest
    @MethodSource("rows")
    void hasItsTruth(Truths.Row row) throws JMSException {
        PgaqMessage message = Samples.received(Samples.known());
        Boolean truth = new Evaluator(message).evaluate(Parser.parse(row.selector()));

        assertEquals(row.truth(), truth == null ? 'U' : truth ? 'T' : 'F');
        assertEquals(row.truth() == 'T', Selector.parse(row.selector()).matches(message));
        assertEquals(
                row.truth() == 'F',
                Selector.parse("NOT (" + row.selector() + ")").matches(message));
    }
}
