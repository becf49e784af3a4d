/* The threads that a session shares among its houses. */
#include "engine/threads.h"

int vv_threads_start(struct varve *v)
{
	unsigned threads = (unsigned)vv_conf_number(&v->ctx.conf, "threads");

	if (v->ctx.pool)
		return 0;
	if (threads == 0) {
		threads = vv_pool_cores();
		threads = threads < 16 ? threads : 16;
	}
	return vv_pool_new(threads - 1, &v->ctx.pool);
}
