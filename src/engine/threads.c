#include "engine/threads.h"

int vv_threads_start(struct vv_context *ctx)
{
	unsigned threads = (unsigned)vv_conf_number(&ctx->conf, "threads");

	if (ctx->pool)
		return 0;
	if (threads == 0) {
		threads = vv_pool_cores();
		threads = threads < 16 ? threads : 16;
	}
	return vv_pool_new(threads - 1, &ctx->pool);
}
