package io.github.pgaq.jms.selector;

import java.util.ArrayList;
import java.util.List;

/** Selectors with their truth for {@link Samples#known}: true (T), false (F) or unknown (U). */
final class Truths {
    record Row(char truth, String selector) {}

    private Truths() {}

    static List<Row> rows() {
        List<Row> rows = new ArrayList<>();

        for (String line : TABLE.split("\n")) if (!line.isBlank()) rows.add(new Row(line.charAt(0), line.substring(2)));
        return rows;
    }

    private static final String TABLE = """
        T s = 'red'
        F s = 'RED'
        F s <> 'red'
        T s <> 'blue'
        F s = 5
        F s <> 5
        F s = TRUE
        F s <> TRUE
        F s > 1
        F s < 1
        T NOT s > 1
        F num = 5
        F num > 4
        T num = '5'
        T quote = 'it''s'
        T bs = 'a\\b'
        T u = 'üñ😀'
        T s = s
        F s = quote
        T s <> quote
        F s < quote
        F s = yes
        F s <> yes
        F s = i
        F s <> i
        F s = nan
        T 'red' = s
        U missing = 'x'
        U missing <> 'x'
        U missing = 1
        U missing > 1
        U missing = missing
        U missing = TRUE
        U nothing = 'x'
        U nothing <> 'x'
        U nothing = nothing
        U NOT missing = 'x'
        U NOT nothing
        U missing
        T missing IS NULL
        F missing IS NOT NULL
        T nothing IS NULL
        F nothing IS NOT NULL
        F s IS NULL
        T s IS NOT NULL
        T yes IS NOT NULL
        T nan IS NOT NULL
        T yes
        F no
        F NOT yes
        T NOT no
        T yes = TRUE
        F yes = FALSE
        F yes <> TRUE
        T yes <> FALSE
        T no = FALSE
        T TRUE = yes
        T yes <> no
        F yes = no
        F yes = 'true'
        F yes = 1
        F yes <> 1
        F s
        T NOT s
        F i
        T (s = 'red') = TRUE
        F (s = 'red') = FALSE
        T (s = 'x') = FALSE
        T (s = 'red') <> FALSE
        U (missing = 1) = TRUE
        U (missing = 1) = FALSE
        T TRUE
        F FALSE
        T TRUE AND s = 'red'
        F TRUE AND FALSE
        T FALSE OR TRUE
        F missing = 1 AND FALSE
        U missing = 1 AND TRUE
        T missing = 1 OR TRUE
        U missing = 1 OR FALSE
        U missing = 1 AND missing = 1
        U missing = 1 OR missing = 1
        U NOT (missing = 1 OR FALSE)
        T NOT (missing = 1 AND FALSE)
        T s = 'x' OR s = 'red' AND i = 10
        F (s = 'x' OR s = 'red') AND i = 11
        F NOT s = 'red' AND s = 'x'
        T NOT (s = 'red' AND s = 'x')
        T i = 10
        T i = 10L
        T i = 10.0
        T i = l
        T by = 5
        T sh = 7
        T by < sh
        T by + sh = 12
        T i > 9
        F i > 10
        T i >= 10
        T i <= 10
        F i < 10
        T 9 < i
        T i <> 11
        F i <> 10
        F i = '10'
        F i <> '10'
        T i / 4 = 2
        T i / 4.0 = 2.5
        T 5 / 2 = 2
        T -5 / 2 = -2
        U i / 0 = 0
        U i / 0 <> 0
        U i / 0.0 > 1
        U NOT i / zero = 1
        U 1 / nzero < 0
        T i * 2 + 1 = 21
        T 1 + i * 2 = 21
        T (1 + i) * 2 = 22
        T i - 1 - 1 = 8
        T i / 2 / 2 = 2
        T - i = -10
        T - -10 = i
        T +i = 10
        T -(i + 1) = -11
        T maxi + 1 = -2147483648
        T maxi + 1L = 2147483648
        T maxi * 2 = -2
        T maxl + 1 = minl
        T maxl = 9223372036854775807
        T minl = -9223372036854775808
        T -minl = minl
        T minl / -1 = minl
        T minl < maxl
        T 2147483647 + 1 < 0
        T 3000000000 > 2147483647
        T d = 0.1
        F fl = 0.1
        T fl = 0.1f
        F fl = d
        T fl > d
        T d + 0.2 <> 0.3
        T d + 0.2 = 0.30000000000000004
        T fl + fl = 0.2f
        T fl * 10 = 1
        T d * 3 > 0.3
        T e22 = 1e22
        T e22 > maxl
        T maxl = 9223372036854775807.0
        T maxl = 9.223372036854775808e18
        T maxd * 10 = inf
        T -maxd * 10 = ninf
        T maxd + maxd = inf
        F maxd * 10 = maxd
        T 4.9e-324 / 2 = 0
        F nan = nan
        T nan <> nan
        F nan > 1
        F nan < 1
        F nan = 1
        T nan <> 1
        T NOT nan > 1
        T inf > 1.7976931348623157e308
        T ninf < minl
        F inf - inf = 0
        T inf - inf <> 0
        T nzero = 0
        T zero = nzero
        F nzero < 0
        U s + 1 = 2
        U NOT s + 1 = 2
        U yes * 2 = 2
        U -s = 1
        U missing + 1 = 2
        U missing + s = 2
        T i BETWEEN 10 AND 10
        T i BETWEEN 1 AND 20
        F i BETWEEN 11 AND 20
        F i BETWEEN 20 AND 1
        T i NOT BETWEEN 11 AND 20
        F i NOT BETWEEN 1 AND 20
        U missing BETWEEN 1 AND 2
        U missing NOT BETWEEN 1 AND 2
        F i BETWEEN 11 AND missing
        T i NOT BETWEEN 11 AND missing
        U i BETWEEN 1 AND missing
        F s BETWEEN 1 AND 2
        F s NOT BETWEEN 1 AND 2
        F yes NOT BETWEEN 1 AND 2
        F s NOT BETWEEN s AND 2
        T NOT s BETWEEN 1 AND 2
        F nan NOT BETWEEN 1 AND 2
        T 1 NOT BETWEEN 2 AND missing
        T 5 BETWEEN by AND sh
        T i + 1 BETWEEN i AND i + 2
        F nan BETWEEN 1 AND 2
        T s IN ('red')
        T s IN ('blue', 'red', 'green')
        F s IN ('blue', 'Red')
        F s NOT IN ('blue', 'red')
        T s NOT IN ('blue')
        U missing IN ('red')
        U missing NOT IN ('red')
        U nothing IN ('red')
        U nothing NOT IN ('red')
        F i IN ('10')
        F i NOT IN ('10')
        T NOT i IN ('10')
        F yes NOT IN ('x')
        F nan NOT IN ('x')
        F NOT s NOT IN ('blue')
        T NOT i NOT IN ('10')
        F JMSXDeliveryCount NOT IN ('1')
        T JMSType NOT IN ('x')
        F JMSType NOT IN ('order')
        F yes IN ('true')
        T quote IN ('a', 'it''s')
        T bs IN ('a\\b')
        T s LIKE 'red'
        T s LIKE 'r%'
        T s LIKE '%'
        T s LIKE '_e_'
        F s LIKE '_e'
        F s LIKE 'R%'
        F s LIKE 're'
        T s LIKE '%d%'
        F s NOT LIKE 'r%'
        T s NOT LIKE 'b%'
        T pct LIKE '50!%!_x' ESCAPE '!'
        F pct LIKE '50!_!_x' ESCAPE '!'
        T pct LIKE '50%%x'
        T pct LIKE '50\\%\\_x' ESCAPE '\\'
        T bs LIKE 'a\\b'
        T bs LIKE 'a_b'
        T bs LIKE '%\\%'
        T bs LIKE 'a\\\\b' ESCAPE '\\'
        T s LIKE '!r!e!d' ESCAPE '!'
        T u LIKE 'üñ_'
        T u LIKE '___'
        F u LIKE '____'
        T quote LIKE '%''%'
        F s LIKE ''
        U missing LIKE '%'
        U missing NOT LIKE '%'
        U nothing LIKE '%'
        F i LIKE '10'
        F i NOT LIKE '10'
        T NOT i LIKE '10'
        F yes NOT LIKE 'x'
        F i NOT LIKE '%'
        T JMSMessageID NOT LIKE 'x%'
        F i LIKE '%'
        T JMSType = 'order'
        F JMSType <> 'order'
        T JMSType LIKE 'ord%'
        T JMSType IN ('x', 'order')
        F JMSType = 5
        F JMSType = s
        T JMSType <> s
        F JMSType <> i
        T JMSType IS NOT NULL
        T JMSCorrelationID = 'c-1'
        T JMSCorrelationID <> JMSType
        T JMSMessageID = 'ID:11111111-2222-3333-4444-555555555555'
        T JMSMessageID LIKE 'ID:1%'
        F JMSMessageID IS NULL
        T JMSPriority = 7
        F JMSPriority = 6
        T JMSPriority > 6.5
        F JMSPriority > 7
        T JMSPriority >= 7
        T JMSPriority <> 0
        T JMSPriority < 100
        T JMSPriority > -1
        F JMSPriority < 0
        T 7 = JMSPriority
        T JMSPriority BETWEEN 7 AND 9
        T JMSPriority NOT BETWEEN 0 AND 6
        T JMSPriority + 3 = i
        T JMSPriority = sh
        F JMSPriority = '7'
        F JMSPriority = s
        T JMSPriority IS NOT NULL
        T NOT JMSPriority = 6
        T JMSTimestamp = 1700000000123
        T JMSTimestamp > 1600000000000
        T JMSTimestamp / 1000 = 1700000000
        T JMSTimestamp * 1000000000 <> 0
        T JMSDeliveryMode = 'NON_PERSISTENT'
        F JMSDeliveryMode = 'PERSISTENT'
        T JMSDeliveryMode <> 'PERSISTENT'
        F JMSDeliveryMode = 1
        F JMSDeliveryMode = 'x'
        T JMSDeliveryMode LIKE 'NON%'
        T JMSDeliveryMode IN ('NON_PERSISTENT')
        F JMSDeliveryMode IS NULL
        T JMSXGroupID = 'g1'
        T JMSXGroupSeq = 3
        T JMSXDeliveryCount = 1
        F JMSXDeliveryCount > 1
        T JMSXDeliveryCount + 1 = 2
        F JMSXDeliveryCount = 'x'
        F JMSXDeliveryCount IS NULL
        T NOT JMSXDeliveryCount
        F JMSXDeliveryCount IN ('1')
        T JMS_vendor = 'v'
        T jms_vendor IS NULL
        T S IS NULL
        T 1 = 1
        F 1 = 2
        T 'a' <> 'b'
        T TRUE <> FALSE
        F TRUE = FALSE
        T 0x10 = 16
        T 017 = 15
        T 0b11 = 3
        T 1_000 = 1e3
        T 7. = 7
        T .5 = 0.5
        T 0x1p4 = 16
        T 16777217f = 16777216f
        """;
}
