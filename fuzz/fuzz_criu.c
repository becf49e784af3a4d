/* The input as a folder of CRIU's images: what is said of the pages must be sound, whatever is beside them. A byte says how many pages there are; then come
 * files: a byte that names one, two for its length, and as many bytes. */
#include "base/mem.h"
#include "reader/reader.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = { "pstree.img", "pagemap-1.img", "mm-1.img", "files.img", "core-1.img", "pagemap-2.img" };

enum { NAMES = sizeof(names) / sizeof(names[0]), PAGE = 4096 };

struct folder {
	const uint8_t *p[NAMES];
	size_t n[NAMES];
};

static void insist(int true_thing)
{
	if (!true_thing)
		abort();
}

static int read_bytes(void *arg, uint64_t at, void *to, size_t n)
{
	(void)arg;
	(void)at;
	memset(to, 1, n);
	return 0;
}

static int read_sibling(void *arg, const char *name, size_t most, uint8_t **out, size_t *n)
{
	const struct folder *d = arg;

	*out = NULL;
	*n = 0;
	for (size_t i = 0; i < NAMES; i++)
		if (d->p[i] && strcmp(names[i], name) == 0) {
			*n = d->n[i] < most ? d->n[i] : most;
			*out = vv_mem_new(*n, 1);
			insist(*out != NULL);
			memcpy(*out, d->p[i], *n);
		}
	return 0;
}

static void use(const struct vv_outline *o, uint64_t len)
{
	uint64_t from = 0;

	for (size_t i = 0; i < o->n_pieces; i++) {
		const struct vv_outline_piece *p = &o->piece[i];

		insist(p->variable < o->n_variables && p->len && p->at >= from && p->at <= len && p->len <= len - p->at);
		insist(o->variable[p->variable].segment && o->variable[p->variable].segment < VV_SEGMENTS);
		from = p->at + p->len;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct folder d = { 0 };
	struct vv_reader_file f = { .name = "folder/pages-1.img", .read = read_bytes, .arg = &d, .sibling = read_sibling };
	struct vv_outline o = { 0 };
	size_t at = 1;

	f.len = size ? (uint64_t)data[0] * PAGE : 0;
	while (at + 3 <= size) {
		size_t name = data[at] % NAMES, n = data[at + 1] | (size_t)data[at + 2] << 8;

		at += 3;
		n = n < size - at ? n : size - at;
		d.p[name] = data + at;
		d.n[name] = n;
		at += n;
	}
	insist(vv_reader_outline(&f, &o) == 0);
	use(&o, f.len);
	vv_reader_outline_fini(&o);
	return 0;
}
