/* of the server: see server.h */
#include "server.h"
