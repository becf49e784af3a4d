#include "track/interpose_table.h"
#include "track/chain.h"
#include "track/kernel_writes.h"
#include "track/registered_memory.h"
#include "track/write_protect.h"
#include <stdatomic.h>

static atomic_bool used;

static const struct vv_interpose_table table = {
	.begin_call = vv_write_protect_begin_call,
	.end_syscall = vv_write_protect_end_syscall,
	.keep_left = vv_kernel_writes_keep_left,
	.note_mprotect = vv_write_protect_note_mprotect,
	.n_pages = &vv_write_protect_n_pages,
	.before_free = vv_write_protect_before_free,
	.release_registered = vv_registered_memory_release,
	.sigaction = vv_write_protect_sigaction,
	.masked = vv_chain_masked,
};

const struct vv_interpose_table *varve_interpose_table(unsigned version, vv_interpose_sigaction *real_sigaction, bool before_libc)
{
	if (version != VV_INTERPOSE_TABLE_VERSION)
		return NULL;
	vv_chain_set_real(real_sigaction);
	atomic_store(&used, before_libc);
	return &table;
}

bool vv_interpose_table_is_used(void)
{
	return atomic_load(&used);
}
