package io.github.pgaq.jms.session;

import jakarta.jms.ConnectionMetaData;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;

/** What the provider is. */
final class MetaData implements ConnectionMetaData {
    static final MetaData INSTANCE = new MetaData();

    private MetaData() {}

    @Override
    public String getJMSVersion() {
        return "3.1";
    }

    @Override
    public int getJMSMajorVersion() {
        return 3;
    }

    @Override
    public int getJMSMinorVersion() {
        return 1;
    }

    @Override
    public String getJMSProviderName() {
        return "pgaq";
    }

    @Override
    public String getProviderVersion() {
        return "0.1";
    }

    @Override
    public int getProviderMajorVersion() {
        return 0;
    }

    @Override
    public int getProviderMinorVersion() {
        return 1;
    }

    @Override
    public Enumeration<?> getJMSXPropertyNames() {
        return Collections.enumeration(List.of("JMSXGroupID", "JMSXGroupSeq", "JMSXDeliveryCount"));
    }
}
