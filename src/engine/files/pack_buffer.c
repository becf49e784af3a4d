#include "engine/files/pack_buffer.h"
#include "base/mem.h"
#include <string.h>

enum {
	/* bytes read, cut and hashed at a time: fits the L2 cache of most cores, and the kernel
	 * reads ahead meanwhile */
	PIECE = 256 << 10,
	ALONE = 1 << 10,   /* a small file of at least so many bytes is a chunk of its own, */
	TOGETHER = 4 << 10, /* several smaller ones share a chunk of hardly more than this, */
	FILES = 64,        /* on average about so many */
	/* bytes behind the last cut: chunks are shorter, unless the user sets the size, and so are
	 * scanned once */
	ENOUGH = 64 << 10,
};

static int add_chunk(struct vv_pack_buffer *s, const uint8_t *p, size_t len)
{
	struct vv_pack_buffer_chunk *c;

	if (vv_mem_room(&s->chunks, s->n_chunks, &s->chunks_cap, sizeof(*s->chunks)) < 0)
		return VV_ENOMEM;
	c = &s->chunks[s->n_chunks++];
	*c = (struct vv_pack_buffer_chunk){ .len = (uint32_t)len, .found = s->digest && vv_pack_buffer_is_zero(p, len) ? VV_PACK_BUFFER_ZERO : VV_PACK_BUFFER_NEW };
	if (s->digest && c->found == VV_PACK_BUFFER_NEW)
		s->digest(p, len, &c->digest);
	return 0;
}

/* Cuts small files: a chunk ends at the end of a file, and the file's content decides at which. So
 * the chunks around a changed, added or removed file stay the same. */
static int cut_files(struct vv_pack_buffer *s)
{
	size_t at = 0, len = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < s->n_parts; i++) {
		size_t n = s->part[i].len;
		bool last = i + 1 == s->n_parts || s->part[i + 1].len >= ALONE || n >= ALONE || len + n >= TOGETHER;

		if (!last)
			last = vv_digest_check(s->bytes + at + len, n) % FILES == 0;
		len += n;
		if (!last)
			continue;
		rc = add_chunk(s, s->bytes + at, len);
		at += len;
		len = 0;
	}
	return rc;
}

/* Cuts the first n bytes, which are present, into complete chunks. A chunk that ends exactly there
 * is left: it may be longer when more bytes have come. */
static int cut(struct vv_pack_buffer *s, size_t n, size_t *done)
{
	bool all = n == s->len;

	while (*done < n && (all || n - *done >= ENOUGH)) {
		const uint8_t *p = s->bytes + *done;
		size_t len = vv_file_set_cut(s->file_set, s->kind, s->chunk, p, n - *done);

		if (len == n - *done && !all)
			return 0;
		if (add_chunk(s, p, len) < 0)
			return VV_ENOMEM;
		*done += len;
	}
	return 0;
}

static int read_and_cut(struct vv_pack_buffer *s)
{
	size_t got = 0, done = 0;
	int rc = 0;

	s->n_chunks = 0;
	for (size_t i = 0; rc == 0 && i < s->n_parts; i++) {
		const struct vv_pack_buffer_part *x = &s->part[i];

		for (size_t at = 0, n; rc == 0 && at < x->len; at += n) {
			n = x->len - at < PIECE ? x->len - at : PIECE;
			rc = vv_file_set_read(s->file_set, x->file, x->at + at, s->bytes + got, n);
			got += n;
			if (rc == 0 && !s->kind->small)
				rc = cut(s, got, &done);
		}
	}
	return rc == 0 && s->kind->small ? cut_files(s) : rc;
}

static void run(struct vv_task *t)
{
	struct vv_pack_buffer *s = (struct vv_pack_buffer *)t;

	s->most = s->len > s->most ? s->len : s->most;
	s->rc = read_and_cut(s);
	if (s->rc)
		vv_err_save(s->rc, &s->error);
}

int vv_pack_buffer_new(const struct vv_file_set *c, size_t chunk, vv_digest_fn digest, size_t cap, bool wide, struct vv_pack_buffer **out)
{
	struct vv_pack_buffer *s = vv_mem_new(1, sizeof(*s));

	if (!s)
		return VV_ENOMEM;
	s->task.run = run;
	s->file_set = c;
	s->chunk = chunk;
	s->digest = digest;
	s->cap = cap;
	s->wide = wide;
	s->bytes = wide ? vv_mem_map_wide(cap) : vv_mem_map(cap);
	if (!s->bytes) {
		vv_mem_free(s);
		return VV_ENOMEM;
	}
	*out = s;
	return 0;
}

void vv_pack_buffer_free(struct vv_pack_buffer *s)
{
	if (!s)
		return;
	vv_mem_unmap(s->bytes, s->cap);
	vv_mem_free(s->part);
	vv_mem_free(s->chunks);
	vv_mem_free(s);
}

/* Large pages are not split. */
void vv_pack_buffer_trim(struct vv_pack_buffer *s)
{
	size_t stays = s->wide ? (s->len + VV_MEM_WIDE - 1) / VV_MEM_WIDE * VV_MEM_WIDE : s->len;

	if (s->most > stays)
		vv_mem_discard(s->bytes + stays, s->most - stays);
	s->most = stays < s->most ? stays : s->most;
}

int vv_pack_buffer_add(struct vv_pack_buffer *s, struct vv_pack_buffer_part x)
{
	struct vv_pack_buffer_part *last = s->n_parts ? &s->part[s->n_parts - 1] : NULL;

	s->len += x.len;
	if (last && last->file == x.file && last->at + last->len == x.at) {
		last->len += x.len;
		return 0;
	}
	if (vv_mem_room(&s->part, s->n_parts, &s->parts_cap, sizeof(*s->part)) < 0)
		return VV_ENOMEM;
	s->part[s->n_parts++] = x;
	return 0;
}
