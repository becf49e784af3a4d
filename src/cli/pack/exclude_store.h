/* The exclusion of a store from the files packed into it. A store may lie below a packed folder, as
 * an archive may lie in the folder that it archives. Otherwise it would grow with every epoch, and
 * be deleted with the packed files. */
#ifndef VV_CLI_PACK_EXCLUDE_STORE_H
#define VV_CLI_PACK_EXCLUDE_STORE_H

#include <stdbool.h>
#include <sys/stat.h>

/* Is this folder the store? url may be of any kind of store, and NULL. */
bool vv_exclude_store_is(const char *url, const struct stat *folder);
/* Is a file or folder the store, or inside it? For a path that does not exist yet its folder
 * decides. */
bool vv_exclude_store_holds(const char *url, const char *path);
/* Returns an error if an output of this name would lie in the store: it could replace a layer. */
int vv_exclude_store_refuse(const char *url, const char *path);
/* The same for another store. It may be the same store. */
int vv_exclude_store_refuse_store(const char *url, const char *other);

#endif
