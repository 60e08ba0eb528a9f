package io.github.pgaq.jms.bench;

import java.io.File;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.server.JournalType;
import org.apache.activemq.artemis.core.server.embedded.EmbeddedActiveMQ;
import org.apache.activemq.artemis.core.settings.impl.AddressSettings;
import org.apache.activemq.artemis.nativo.jlibaio.LibaioContext;

/** Apache ActiveMQ Artemis as a process: a journal with sync, otherwise its defaults. Arguments: directory, port. */
public final class Broker {

    private Broker() {}

    /** Starts it; it runs until standard input ends. */
    public static void main(String[] arguments) throws Exception {
        File directory = new File(arguments[0]);
        boolean aio = LibaioContext.isLoaded();
        ConfigurationImpl configuration = new ConfigurationImpl();
        configuration.setBrokerInstance(directory);
        configuration
                .setSecurityEnabled(false)
                .setPersistenceEnabled(true)
                .setJournalType(aio ? JournalType.ASYNCIO : JournalType.NIO)
                .setJournalSyncTransactional(true)
                .setJournalSyncNonTransactional(true)
                .addAcceptorConfiguration("tcp", "tcp://127.0.0.1:" + arguments[1]);
        configuration.addAddressSetting(
                "#",
                new AddressSettings()
                        .setMaxDeliveryAttempts(-1)
                        .setRedeliveryDelay(0)
                        .setAutoDeleteQueues(false)
                        .setAutoDeleteAddresses(false));
        EmbeddedActiveMQ broker = new EmbeddedActiveMQ();
        broker.setConfiguration(configuration);
        broker.start();
        System.out.println("ready, journal " + (aio ? "libaio" : "NIO"));
        while (System.in.read() >= 0) {
            // until the driver closes it
        }
        broker.stop();
        System.exit(0);
    }
}
