#include "engine/lineage/mapped_block.h"
#include "base/err.h"
#include "base/fs.h"
#include "track/write_protect.h"
#include <string.h>

struct mapped_block_taking {
	const uint8_t *raw;
	const struct vv_block *block;
	const struct vv_part *part;
	size_t n;
	bool ok;
};

/* A complete block is checked while it is copied. */
static void take(void *arg)
{
	struct mapped_block_taking *t = arg;

	if (t->n == 1 && t->part->len == t->block->raw_len) {
		t->ok = vv_digest_check_copy(t->part->to, t->raw, t->part->len) == t->block->check;
		return;
	}
	t->ok = vv_digest_check(t->raw, t->block->raw_len) == t->block->check;
	for (size_t k = 0; t->ok && k < t->n; k++)
		memcpy(t->part[k].to, t->raw + t->part[k].from, t->part[k].len);
}

bool vv_mapped_block_copy(const struct vv_layer_file *f, const struct vv_block *b, const struct vv_part *part, size_t n)
{
	struct mapped_block_taking t = { f->get->map && b->codec == 0 ? f->get->map + b->off : NULL, b, part, n, false };

	if (!t.raw || !vv_fs_resident(t.raw, b->raw_len))
		return false;
	if (vv_write_protect_try_read(take, &t) == 0 && t.ok && vv_store_get_check(f->get) == 0)
		return true;
	vv_err_clear();
	return false;
}
