/* aggregate = node | N: the layers of neighbouring ranks of one storage node go into one file. */
#ifndef VV_ENGINE_WRITE_SHARED_FILE_H
#define VV_ENGINE_WRITE_SHARED_FILE_H

#include "engine/write/layer_writer.h"

struct vv_comm;
struct vv_group;

/* At the opening: decides which ranks write together. VV_ENOTSUP if the store has no such files. */
int vv_shared_file_plan(struct vv_group *g, struct vv_store *store);

/* Called by all ranks: opens the pass's put as a part of the file, when the limit of stored bytes
 * is known. */
int vv_shared_file_begin(struct vv_layer_writer *p, struct vv_comm *comm);
/* Called by the leaders, when all ranks have stored their layers: makes them visible. */
int vv_shared_file_seal(struct vv_context *ctx);
/* The epoch is discarded: an unsealed file is removed. */
void vv_shared_file_drop(struct vv_context *ctx);

#endif
