"""pgaq console: queues, messages and waits in the browser.  `application` makes an ASGI application, also to be mounted into another one."""
