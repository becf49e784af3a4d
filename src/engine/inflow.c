#include "engine/inflow.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include <inttypes.h>
#include <string.h>

enum {
	PRIME = 8 << 20,  /* bytes by which recipes are chosen */
	HOLD = 64 << 20,  /* of skeleton: if there is more, it is not held back until the end */
	GRAIN = 1 << 20,  /* then it goes in multiples of this, so that it is cut into the same chunks every time */
	LEVEL = 3,        /* of what no sample was seen of */
};

/* ---- files ------------------------------------------------------------------------------------------------------------------- */

/* Those that come are few, or the last ones: it is looked for from the end. */
static uint32_t find_file(const struct vv_cargo *c, const char *name)
{
	size_t i = c->n_files;

	while (i > 0 && c->file[i - 1].name != name)
		i--;
	return i ? (uint32_t)(i - 1) : UINT32_MAX;
}

static int add_file(const struct vv_inflow *in, struct vv_cargo *c, const char *name, uint32_t *out)
{
	uint64_t now = vv_clock_wall_ns();
	struct vv_cargo_file *f;

	if (!vv_manifest_is_name(name))
		return vv_err_set(VV_EINVAL, "'%s' cannot be the name of a packed file: it must be relative, without '..'", name);
	if (c->n_files == VV_MANIFEST_FILES - 1)
		return vv_err_set(VV_EINVAL, "more than %d files are too many for one epoch", VV_MANIFEST_FILES - 1);
	for (size_t i = 0; i < c->n_files; i++)
		if (strcmp(c->file[i].name, name) == 0)
			return vv_err_set(VV_EINVAL, "two files are called '%s'", name);
	if (vv_mem_room(&c->file, c->n_files, &c->files_cap, sizeof(*c->file)) < 0)
		return VV_ENOMEM;
	f = &c->file[c->n_files];
	*f = (struct vv_cargo_file){ .path = name, .name = name, .fd = -1, .format = in->format };
	f->st.st_mode = S_IFREG | S_IRUSR | S_IWUSR;
	f->st.st_mtim = (struct timespec){ .tv_sec = (time_t)(now / 1000000000), .tv_nsec = (long)(now % 1000000000) };
	*out = (uint32_t)c->n_files++;
	c->kind[VV_CARGO_SKELETON].instances++;
	return 0;
}

/* The part's file, longer by it; *at is where it begins. */
static int take_in(const struct vv_inflow *in, struct vv_cargo *c, const struct vv_inflow_part *p, uint32_t *file, uint64_t *at)
{
	struct vv_cargo_kind *k = &c->kind[p->kind];
	int rc = 0;

	*file = find_file(c, p->name);
	if (*file == UINT32_MAX)
		rc = add_file(in, c, p->name, file);
	if (rc)
		return rc;
	*at = (uint64_t)c->file[*file].st.st_size;
	if (p->n > VV_MAX_REGION_BYTES - *at)
		return vv_err_set(VV_EINVAL, "'%s' has more than 2^40 bytes, the format's limit", p->name);
	c->file[*file].st.st_size += (off_t)p->n;
	c->bytes += p->n;
	k->raw += p->n;
	if (p->kind != VV_CARGO_SKELETON && p->n && k->last != *file + 1) {
		k->instances++;
		k->last = *file + 1;
	}
	return 0;
}

/* ---- what is held ------------------------------------------------------------------------------------------------------------ */

/* The last span of a file and kind, if it ends at `at`. */
static size_t find_span(const struct vv_cargo *c, uint32_t file, uint32_t kind, uint64_t at)
{
	size_t i = c->n_spans;

	while (i > 0 && (c->span[i - 1].file != file || c->span[i - 1].kin != kind))
		i--;
	return i && c->span[i - 1].at + c->span[i - 1].len == at ? i - 1 : c->n_spans;
}

static int hold(struct vv_cargo *c, uint32_t file, uint64_t at, const struct vv_inflow_part *p)
{
	size_t i = find_span(c, file, p->kind, at);

	if (p->n == 0)
		return 0;
	if (i == c->n_spans) {
		size_t cap = c->spans_cap;

		if (vv_mem_room(&c->span, i, &c->spans_cap, sizeof(*c->span)) < 0)
			return VV_ENOMEM;
		if (c->spans_cap != cap) {
			struct vv_buf *grown = vv_mem_grow(c->held, c->spans_cap, sizeof(*c->held));

			if (!grown) {
				c->spans_cap = cap;
				return VV_ENOMEM;
			}
			c->held = grown;
		}
		c->held[i] = (struct vv_buf){ 0 };
		c->span[c->n_spans++] = (struct vv_span){ .file = file, .kin = p->kind, .at = at };
	}
	vv_buf_add(&c->held[i], p->bytes, p->n);
	c->span[i].len += p->n;
	return vv_buf_check(&c->held[i]);
}

int vv_inflow_prime(const struct vv_inflow *in, struct vv_cargo *c)
{
	struct vv_inflow_part part;
	uint64_t pages = 0, at;
	uint32_t file;
	int rc = 0;

	while (rc == 0 && pages < PRIME && c->bytes - pages < HOLD) {
		rc = in->next(in->arg, &part);
		if (rc <= 0)
			return rc;
		rc = take_in(in, c, &part, &file, &at);
		if (rc == 0)
			rc = hold(c, file, at, &part);
		if (part.kind != VV_CARGO_SKELETON)
			pages += part.n;
	}
	return rc;
}

void vv_inflow_settle(struct vv_cargo *c, bool coding)
{
	const struct vv_cargo_kind *like = NULL;

	for (size_t i = 1; !like && i < c->n_kinds; i++)
		like = c->kind[i].coded ? &c->kind[i] : NULL;
	for (size_t i = 1; i < c->n_kinds; i++) {
		struct vv_cargo_kind *k = &c->kind[i];

		if (!k->coded) {
			k->recipe = like ? like->recipe : (struct vv_recipe){ .width = 1, .record = 1, .coder = VV_CODEC_ZSTD, .level = LEVEL };
			k->coded = coding;
		}
		k->merged = true; /* processes of one program are alike */
	}
}

/* ---- feeding ----------------------------------------------------------------------------------------------------------------- */

static int push_span(struct vv_cargo *c, struct vv_feed *f, size_t i, size_t n)
{
	struct vv_span *s = &c->span[i];
	struct vv_buf *b = &c->held[i];
	int rc = n ? vv_feed_push(f, s->kin, s->file, s->at, b->p, n) : 0;

	if (n == b->n) {
		vv_buf_fini(b);
	} else if (n) {
		memmove(b->p, b->p + n, b->n - n);
		b->n -= n;
	}
	s->at += n;
	s->len -= n;
	return rc;
}

/* What is held of skeleton, or of all else: of each span as much as is a multiple of grain. */
static int push_held(struct vv_cargo *c, struct vv_feed *f, bool skeleton, size_t grain)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < c->n_spans; i++)
		if ((c->span[i].kin == VV_CARGO_SKELETON) == skeleton)
			rc = push_span(c, f, i, c->held[i].n - c->held[i].n % grain);
	return rc;
}

/* There is more skeleton than was thought. */
static int let_go(struct vv_cargo *c, struct vv_feed *f, uint64_t *held)
{
	int rc = push_held(c, f, true, GRAIN);

	*held = 0;
	for (size_t i = 0; i < c->n_spans; i++)
		*held += c->held[i].n;
	if (rc == 0 && *held >= HOLD / 2) { /* many small files */
		rc = push_held(c, f, true, 1);
		*held = 0;
	}
	return rc;
}

int vv_inflow_feed(const struct vv_inflow *in, struct vv_cargo *c, struct vv_feed *f)
{
	struct vv_inflow_part part;
	uint64_t held = 0, at;
	uint32_t file;
	int rc = push_held(c, f, false, 1), more = 1;

	while (rc == 0) {
		more = in->next(in->arg, &part);
		if (more <= 0)
			break;
		rc = take_in(in, c, &part, &file, &at);
		if (rc == 0 && part.kind != VV_CARGO_SKELETON) {
			rc = vv_feed_push(f, part.kind, file, at, part.bytes, part.n);
		} else if (rc == 0) {
			rc = hold(c, file, at, &part);
			held += part.n;
			if (rc == 0 && held >= HOLD)
				rc = let_go(c, f, &held);
		}
	}
	rc = rc ? rc : more;
	return rc ? rc : push_held(c, f, true, 1);
}
