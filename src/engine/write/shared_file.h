/* aggregate = node | N: the layers of neighbouring ranks of one place go into one file. */
#ifndef VV_ENGINE_WRITE_SHARED_FILE_H
#define VV_ENGINE_WRITE_SHARED_FILE_H

#include "engine/write/layer_writer.h"

struct vv_comm;
struct vv_group;

/* At the opening: which ranks write together. VV_ENOTSUP if the store has no such files. */
int vv_shared_file_plan(struct vv_group *g, struct vv_store *store);

/* All ranks: opens the pass's put, as a part of the file, now that it is known how much will be stored at most. */
int vv_shared_file_begin(struct vv_layer_writer *p, struct vv_comm *comm);
/* The leaders, when all ranks have stored their layers: makes them visible. */
int vv_shared_file_seal(struct vv_context *ctx);
/* The epoch is given up: nothing remains of a file that was not sealed. */
void vv_shared_file_drop(struct vv_context *ctx);

#endif
