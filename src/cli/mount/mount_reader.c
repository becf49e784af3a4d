#include "cli/mount/mount_reader.h"
#include "base/err.h"
#include "base/mem.h"
#include <string.h>

enum {
	MEMORY = 128 << 20, /* decoded blocks of one view */
	NEAR = 2 << 20,	    /* requests of one reader in order may overtake each other */
};

int vv_mount_reader_open(struct vv_mount_view *v, const struct vv_mount_item *item, struct vv_pool *pool,
			 struct vv_mount_reader **out)
{
	struct vv_mount_reader *r = vv_mem_new(1, sizeof(*r));
	int rc = 0;

	if (!r)
		return VV_ENOMEM;
	*r = (struct vv_mount_reader){.view = v, .item = item, .lock = PTHREAD_MUTEX_INITIALIZER};
	if (item->npy)
		r->header_len = vv_export_npy_shape(item->npy, r->header);
	pthread_mutex_lock(&v->lock);
	if (!v->cache)
		rc = vv_block_cache_open(v->lineage, pool, v->runs, v->n_regions, MEMORY, &v->cache);
	if (rc == 0 && v->opened[item->region])
		vv_block_cache_expect_again(v->cache, item->region, 0, item->size - r->header_len);
	if (rc == 0)
		v->opened[item->region] = true;
	pthread_mutex_unlock(&v->lock);
	if (rc)
		vv_mount_reader_close(r);
	else
		*out = r;
	return rc;
}

void vv_mount_reader_close(struct vv_mount_reader *r)
{
	pthread_mutex_destroy(&r->lock);
	vv_mem_free(r);
}

/* If the file is read in order, the following blocks are decoded ahead. One thread at a time sees
 * to that, and the others do not wait for it. */
static void look_ahead(struct vv_mount_reader *r, uint64_t at, size_t n)
{
	if (pthread_mutex_trylock(&r->lock) != 0)
		return;
	if (at <= r->next + NEAR && r->next <= at + NEAR) {
		r->read_ahead_end = r->read_ahead_end < at ? at : r->read_ahead_end;
		vv_block_cache_read_ahead(r->view->cache, r->item->region, at, &r->read_ahead_end);
	} else {
		r->read_ahead_end = 0;
	}
	r->next = at + n;
	pthread_mutex_unlock(&r->lock);
}

int vv_mount_reader_read(struct vv_mount_reader *r, uint64_t at, uint8_t *to, size_t n, size_t *got)
{
	size_t done = 0, head = 0;
	int rc = 0;

	*got = 0;
	if (at >= r->item->size)
		return 0;
	n = r->item->size - at < n ? (size_t)(r->item->size - at) : n;
	if (at < r->header_len) {
		head = r->header_len - (size_t)at < n ? r->header_len - (size_t)at : n;
		memcpy(to, r->header + at, head);
		done = head;
	}
	at = at + head - r->header_len;
	if (done < n)
		look_ahead(r, at, n - done);
	if (done < n)
		rc = vv_block_cache_copy(r->view->cache, r->item->region, at, to + done, n - done);
	if (rc == 0)
		*got = n;
	return rc;
}
