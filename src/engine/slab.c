#include "engine/slab.h"
#include "base/mem.h"
#include <string.h>

static int read_parts(struct vv_slab *s)
{
	size_t at = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < s->n_parts; at += s->part[i++].len)
		rc = vv_cargo_read(s->cargo, s->part[i].file, s->part[i].at, s->bytes + at, s->part[i].len);
	return rc;
}

static int cut(struct vv_slab *s)
{
	size_t at = 0;

	s->n_chunks = 0;
	while (at < s->len) {
		size_t n = vv_cargo_cut(s->cargo, s->kind, s->chunk, s->bytes + at, s->len - at);
		struct vv_slab_chunk *c;

		if (vv_mem_room(&s->chunks, s->n_chunks, &s->chunks_cap, sizeof(*s->chunks)) < 0)
			return VV_ENOMEM;
		c = &s->chunks[s->n_chunks++];
		*c = (struct vv_slab_chunk){ .len = (uint32_t)n, .found = s->digest && vv_slab_is_zero(s->bytes + at, n) ? VV_SLAB_ZERO : VV_SLAB_NOWHERE };
		if (s->digest && c->found == VV_SLAB_NOWHERE)
			s->digest(s->bytes + at, n, &c->digest);
		at += n;
	}
	return 0;
}

static void run(struct vv_task *t)
{
	struct vv_slab *s = (struct vv_slab *)t;

	s->most = s->len > s->most ? s->len : s->most;
	s->rc = read_parts(s);
	if (s->rc == 0)
		s->rc = cut(s);
	if (s->rc)
		vv_err_save(s->rc, &s->error);
}

int vv_slab_new(const struct vv_cargo *c, size_t chunk, vv_digest_fn digest, size_t cap, bool wide, struct vv_slab **out)
{
	struct vv_slab *s = vv_mem_new(1, sizeof(*s));

	if (!s)
		return VV_ENOMEM;
	s->task.run = run;
	s->cargo = c;
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

void vv_slab_free(struct vv_slab *s)
{
	if (!s)
		return;
	vv_mem_unmap(s->bytes, s->cap);
	vv_mem_free(s->part);
	vv_mem_free(s->chunks);
	vv_mem_free(s);
}

/* A large page is not broken up. */
void vv_slab_trim(struct vv_slab *s)
{
	size_t stays = s->wide ? (s->len + VV_MEM_WIDE - 1) / VV_MEM_WIDE * VV_MEM_WIDE : s->len;

	if (s->most > stays)
		vv_mem_discard(s->bytes + stays, s->most - stays);
	s->most = stays < s->most ? stays : s->most;
}

int vv_slab_add(struct vv_slab *s, struct vv_slab_part x)
{
	struct vv_slab_part *last = s->n_parts ? &s->part[s->n_parts - 1] : NULL;

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
