#include "core/format/parity.h"
#include "base/err.h"
#include "base/mem.h"
#include "core/format/run.h"
#include <string.h>

static const char magic[8] = { 'V', 'A', 'R', 'V', 'E', 'P', 'A', 'R' };

enum {
	VERSION = 1,
	FIXED = 72,          /* bytes before the layers */
	LAYER_LEAST = 38,    /* bytes of a layer's entry, with a name of one byte */
	WIDTH_MOST = 64,     /* blocks of a stripe */
	M_MOST = 16,
};

void vv_parity_head_fini(struct vv_parity_head *h)
{
	vv_mem_free(h->layer);
	*h = (struct vv_parity_head){ 0 };
}

static void put_layer(const struct vv_parity_layer *l, struct vv_buf *out)
{
	vv_wire_put_u32(out, l->rank);
	vv_wire_put_u32(out, l->storage_node);
	vv_wire_put_u32(out, l->domain);
	vv_wire_put_u64(out, l->len);
	vv_buf_add(out, &l->head, sizeof(l->head));
	vv_wire_put_str(out, l->domain_name);
}

static void put_check(struct vv_buf *out, size_t start)
{
	if (!out->failed)
		vv_wire_put_u64(out, vv_digest_check(out->p + start, out->n - start));
}

static void put_head(const struct vv_parity_head *h, uint32_t len, struct vv_buf *out)
{
	vv_buf_add(out, magic, sizeof(magic));
	vv_wire_put_u16(out, VERSION);
	vv_wire_put_u16(out, 0);
	vv_wire_put_u8(out, h->k);
	vv_wire_put_u8(out, h->m);
	vv_wire_put_u16(out, 0);
	vv_buf_add(out, h->lineage, sizeof(h->lineage));
	vv_wire_put_u64(out, h->epoch);
	vv_wire_put_u32(out, h->n_ranks);
	vv_wire_put_u32(out, h->rank);
	vv_wire_put_u32(out, h->block_len);
	vv_wire_put_u32(out, (uint32_t)h->n_layers);
	vv_wire_put_u32(out, len);
	vv_wire_put_u32(out, 0);
	vv_wire_put_u64(out, h->since);
	for (size_t i = 0; i < h->n_layers; i++)
		put_layer(&h->layer[i], out);
}

void vv_parity_head_put(const struct vv_parity_head *h, struct vv_buf *out)
{
	size_t start = out->n, len = FIXED + 8;

	for (size_t i = 0; i < h->n_layers; i++) /* a name is shorter than 128 bytes */
		len += LAYER_LEAST - 1 + strlen(h->layer[i].domain_name);
	put_head(h, (uint32_t)len, out);
	put_check(out, start);
}

static int bad(const char *why)
{
	return vv_err_set(VV_EDAMAGED, "parity: %s", why);
}

static void get_layer(struct vv_wire *w, const struct vv_parity_head *h, size_t i)
{
	struct vv_parity_layer *l = &h->layer[i];
	const uint8_t *head;

	l->rank = vv_wire_u32(w);
	l->storage_node = vv_wire_u32(w);
	l->domain = vv_wire_u32(w);
	l->len = vv_wire_u64(w);
	head = vv_wire_bytes(w, sizeof(l->head));
	if (head)
		memcpy(&l->head, head, sizeof(l->head));
	vv_wire_str(w, l->domain_name, sizeof(l->domain_name));
	w->bad |= l->rank >= h->n_ranks || (i && l->rank <= h->layer[i - 1].rank) || l->storage_node > l->rank + 1;
	w->bad |= l->domain > i || (l->domain < i && h->layer[l->domain].domain != l->domain);
	w->bad |= !l->domain_name[0] || l->len < 1 || l->len > 2 * VV_MAX_PAYLOAD;
}

static int get_layers(struct vv_parity_head *h, struct vv_wire *w)
{
	h->own = h->n_layers;
	h->layer = vv_mem_new(h->n_layers, sizeof(*h->layer));
	if (!h->layer)
		return VV_ENOMEM;
	for (size_t i = 0; !w->bad && i < h->n_layers; i++) {
		get_layer(w, h, i);
		if (h->layer[i].rank == h->rank)
			h->own = i;
	}
	if (w->bad || vv_wire_left(w) || h->own == h->n_layers)
		return bad("malformed layers");
	return 0;
}

static uint32_t get_fixed(struct vv_parity_head *h, struct vv_wire *w)
{
	uint32_t len, zero;

	h->k = vv_wire_u8(w);
	h->m = vv_wire_u8(w);
	zero = vv_wire_u16(w);
	memcpy(h->lineage, vv_wire_bytes(w, 16), 16);
	h->epoch = vv_wire_u64(w);
	h->n_ranks = vv_wire_u32(w);
	h->rank = vv_wire_u32(w);
	h->block_len = vv_wire_u32(w);
	h->n_layers = vv_wire_u32(w);
	len = vv_wire_u32(w);
	zero |= vv_wire_u32(w);
	h->since = vv_wire_u64(w);
	w->bad |= zero || h->since > h->epoch || h->k < 1 || h->m < 1 || h->m > M_MOST || h->k + h->m > WIDTH_MOST;
	w->bad |= h->epoch < 1 || h->epoch > VV_MAX_EPOCH || h->n_ranks < 1 || h->n_ranks > VV_MAX_RANKS;
	w->bad |= h->n_layers < 2 || h->n_layers > VV_PARITY_LAYERS || h->n_layers > h->n_ranks;
	w->bad |= len < FIXED + 8 + h->n_layers * LAYER_LEAST || len > FIXED + 8 + h->n_layers * (LAYER_LEAST + VV_PARITY_DOMAIN);
	return len;
}

int64_t vv_parity_head_get(struct vv_parity_head *h, const void *p, size_t n, uint64_t file_len)
{
	struct vv_wire w = vv_wire_over(p, n), last;
	uint32_t len;
	int rc;

	*h = (struct vv_parity_head){ 0 };
	if (n < FIXED)
		return file_len < FIXED ? bad("too short") : FIXED;
	if (memcmp(vv_wire_bytes(&w, 8), magic, 8) != 0)
		return bad("not a parity object");
	if (vv_wire_u16(&w) != VERSION || vv_wire_u16(&w) != 0)
		return bad("a format version that this varve does not read");
	len = get_fixed(h, &w);
	if (w.bad || len > file_len) {
		*h = (struct vv_parity_head){ 0 };
		return bad("impossible numbers");
	}
	if (n < len) {
		*h = (struct vv_parity_head){ 0 };
		return len;
	}
	last = vv_wire_over((const uint8_t *)p + len - 8, 8);
	w.end = (const uint8_t *)p + len - 8;
	rc = vv_wire_u64(&last) == vv_digest_check(p, len - 8) ? get_layers(h, &w) : bad("checksum mismatch");
	if (rc) {
		vv_parity_head_fini(h);
		return rc;
	}
	return len;
}

bool vv_parity_head_same(const struct vv_parity_head *a, const struct vv_parity_head *b)
{
	if (a->epoch != b->epoch || a->n_ranks != b->n_ranks || a->k != b->k || a->m != b->m || a->since != b->since || a->block_len != b->block_len ||
	    a->n_layers != b->n_layers || memcmp(a->lineage, b->lineage, sizeof(a->lineage)) != 0)
		return false;
	for (size_t i = 0; i < a->n_layers; i++)
		if (a->layer[i].rank != b->layer[i].rank || a->layer[i].len != b->layer[i].len || a->layer[i].domain != b->layer[i].domain ||
		    !vv_digest_equal(&a->layer[i].head, &b->layer[i].head))
			return false;
	return true;
}

void vv_parity_checks_fini(struct vv_parity_checks *c)
{
	vv_mem_free(c->parity);
	vv_mem_free(c->data);
	vv_mem_free(c->digest);
	*c = (struct vv_parity_checks){ 0 };
}

void vv_parity_checks_put(const struct vv_parity_checks *c, size_t n_layers, struct vv_buf *out)
{
	size_t start = out->n;

	for (size_t i = 0; i < c->n_parity; i++)
		vv_wire_put_u64(out, c->parity[i]);
	vv_wire_put_u64(out, c->n_data);
	for (size_t i = 0; i < c->n_data; i++)
		vv_wire_put_u64(out, c->data[i]);
	vv_buf_add(out, c->digest, n_layers * sizeof(*c->digest));
	put_check(out, start);
}

static void get_numbers(struct vv_wire *w, uint64_t *to, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = vv_wire_u64(w);
}

/* Room for at most the numbers that the object can hold. */
static int make_room(struct vv_parity_checks *c, size_t n, size_t n_parity, size_t n_data, size_t n_layers)
{
	if (n < vv_parity_checks_len(n_parity, 0, n_layers) || n > vv_parity_checks_len(n_parity, n_data, n_layers))
		return bad("its end has another length than its layers say");
	c->parity = vv_mem_new(n_parity, sizeof(*c->parity));
	c->data = vv_mem_new(n_data, sizeof(*c->data));
	c->digest = vv_mem_new(n_layers, sizeof(*c->digest));
	return c->parity && c->data && c->digest ? 0 : VV_ENOMEM;
}

int vv_parity_checks_get(struct vv_parity_checks *c, const void *p, size_t n, size_t n_parity, size_t n_data, size_t n_layers)
{
	struct vv_wire w, last;
	int rc;

	*c = (struct vv_parity_checks){ 0 };
	rc = make_room(c, n, n_parity, n_data, n_layers);
	if (rc == 0) {
		w = vv_wire_over(p, n - 8);
		last = vv_wire_over((const uint8_t *)p + n - 8, 8);
		get_numbers(&w, c->parity, n_parity);
		c->n_parity = n_parity;
		c->n_data = (size_t)vv_wire_u64(&w);
		if (vv_wire_u64(&last) != vv_digest_check(p, n - 8))
			rc = bad("checksum mismatch at its end");
		else if ((c->n_data && c->n_data != n_data) || n != vv_parity_checks_len(n_parity, c->n_data, n_layers))
			rc = bad("malformed end");
	}
	if (rc == 0) {
		get_numbers(&w, c->data, c->n_data);
		memcpy(c->digest, vv_wire_bytes(&w, n_layers * sizeof(*c->digest)), n_layers * sizeof(*c->digest));
	} else {
		vv_parity_checks_fini(c);
	}
	return rc;
}

void vv_parity_layer_digest(const uint64_t *check, size_t n, struct vv_digest *out)
{
	/* The checks lie in memory as they are stored. */
	_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "of little-endian machines");
	vv_digest_xxh3(check, n * sizeof(*check), out);
}
