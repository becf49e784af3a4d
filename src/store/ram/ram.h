/* A store in the memory of this process, for tests: mem:NAME. All users of a name share it until
 * the last closes. */
#ifndef VV_STORE_RAM_RAM_H
#define VV_STORE_RAM_RAM_H

#include "store/backend/backend.h"
#include "store/backend/store_options.h"

int vv_ram_open(const char *url, const struct vv_store_options *opt, struct vv_store **out);

#endif
