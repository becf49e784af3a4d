/* A store may lie below a folder that is packed into it, as an archive may lie in the folder that it is made of: it is left out, or it would grow
 * with every epoch, and be deleted with what was packed. */
#ifndef VV_CLI_PACK_EXCLUDE_STORE_H
#define VV_CLI_PACK_EXCLUDE_STORE_H

#include <stdbool.h>
#include <sys/stat.h>

/* Is this folder the store? url may be of any kind of store, and NULL. */
bool vv_exclude_store_is(const char *url, const struct stat *folder);
/* Is a file or folder the store, or somewhere in it? One that is not there yet is where its folder is. */
bool vv_exclude_store_holds(const char *url, const char *path);
/* An error if an output of this name would come to lie there: it could take the place of a layer. */
int vv_exclude_store_refuse(const char *url, const char *path);

#endif
