/* Format of a message: the number of stretches; for each its file, kind number, offset and length;
 * then all bytes. The first stretch of a kind also has the segment and name of the kind. */
#include "engine/files/handover_message.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/wire.h"
#include "engine/files/recipes.h"
#include <string.h>

int vv_handover_message_add(struct vv_handover_messages *p, struct vv_handover_message x)
{
	int rc = vv_mem_room(&p->v, p->n, &p->cap, sizeof(*p->v));

	if (rc == 0) {
		p->v[p->n++] = x;
		p->bytes += x.len;
	}
	return rc;
}

/* ---- writing --------------------------------------------------------------------------------- */

int vv_handover_message_put_head(const struct vv_handover_messages *p, const struct vv_file_set *c, struct vv_buf *out)
{
	/* per kind, plus 1 */
	uint32_t *title = vv_mem_new(c->n_kinds, sizeof(*title)), n_titles = 0;

	if (!title)
		return VV_ENOMEM;
	vv_wire_put_var(out, p->n);
	for (const struct vv_handover_message *x = p->v; x < p->v + p->n; x++) {
		const struct vv_file_set_kind *k = &c->kind[x->kind];

		vv_wire_put_var(out, x->file);
		vv_wire_put_var(out, title[x->kind] ? title[x->kind] - 1 : n_titles);
		if (!title[x->kind]) {
			vv_wire_put_u8(out, k->segment);
			vv_wire_put_str(out, k->key);
			title[x->kind] = ++n_titles;
		}
		vv_wire_put_var(out, x->at);
		vv_wire_put_var(out, x->len);
	}
	vv_mem_free(title);
	return vv_buf_check(out);
}

size_t vv_handover_message_data_len(const struct vv_handover_messages *p)
{
	return (size_t)p->bytes;
}

int vv_handover_message_put(const struct vv_handover_messages *p, const struct vv_file_set *c, const struct vv_buf *head, uint8_t *out)
{
	uint8_t *to = out + head->n;
	int rc = 0;

	memcpy(out, head->p, head->n);
	for (size_t i = 0; rc == 0 && i < p->n; to += p->v[i++].len)
		rc = vv_file_set_read(c, p->v[i].file, p->v[i].at, to, (size_t)p->v[i].len);
	return rc;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct titles {
	uint32_t *kind; /* of each */
	size_t n, cap;
};

/* Reads a kind that the message mentions first. */
static int get_title(struct vv_file_set *c, const struct vv_pack_options *opt, struct vv_wire *w, struct titles *t)
{
	uint8_t segment = vv_wire_u8(w);
	char key[VV_SIMILARITY_KEY_MAX] = "";
	int rc = vv_mem_room(&t->kind, t->n, &t->cap, sizeof(*t->kind));

	vv_wire_str(w, key, sizeof(key));
	w->bad |= segment == VV_SEGMENT_NONE || segment >= VV_SEGMENTS;
	if (rc || w->bad)
		return rc;
	rc = vv_file_set_segment(c, key, segment, &t->kind[t->n]);
	if (rc == 0)
		vv_recipes_join_ranks(c, t->kind[t->n++], opt);
	return rc;
}

static int get_message(struct vv_handover_messages *p, struct vv_file_set *c, const struct vv_pack_options *opt, struct vv_wire *w, struct titles *t)
{
	const struct vv_handover_message *last = p->n ? &p->v[p->n - 1] : NULL;
	struct vv_handover_message x = { .file = (uint32_t)vv_wire_var_max(w, UINT32_MAX) };
	size_t title = (size_t)vv_wire_var_max(w, t->n);
	int rc = title == t->n && !w->bad ? get_title(c, opt, w, t) : 0;

	x.at = vv_wire_var_max(w, VV_MAX_REGION_BYTES);
	x.len = vv_wire_var_max(w, VV_MAX_REGION_BYTES - x.at);
	w->bad |= x.len == 0 || x.len > vv_wire_left(w) || p->bytes > vv_wire_left(w) - x.len ||
		  (last && (x.file < last->file || (x.file == last->file && x.at < last->at + last->len)));
	if (rc || w->bad)
		return rc;
	x.kind = t->kind[title];
	return vv_handover_message_add(p, x);
}

int vv_handover_message_get(struct vv_handover_messages *p, struct vv_file_set *c, const struct vv_pack_options *opt, const uint8_t *message, size_t n, const uint8_t **bytes)
{
	struct vv_wire w = vv_wire_over(message, n);
	struct titles t = { 0 };
	int rc = 0;

	for (uint64_t left = vv_wire_var(&w); rc == 0 && left && !w.bad; left--)
		rc = get_message(p, c, opt, &w, &t);
	vv_mem_free(t.kind);
	*bytes = w.p;
	if (rc == 0 && (w.bad || vv_wire_left(&w) != p->bytes))
		rc = vv_err_set(VV_EPEER, "memory was handed over in a message that cannot be; nothing was stored, try again");
	return rc;
}
