// outline_check [-b] FILE...: the outline of each file as a line of JSON, for scripts that know better what is in it. With -b every piece has the
// SHA-256 of its bytes as they were before filters, or null.
#include "base/deflate.h"
#include "base/err.h"
#include "base/sha256.h"
#include "reader/filter.h"
#include "vv_test.h"
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int read_at(void *arg, uint64_t at, void *to, size_t n)
{
	return pread(*(int *)arg, to, n, (off_t)at) == (ssize_t)n ? 0 : vv_err_set(VV_EIO, "cannot read %zu bytes at %" PRIu64, n, at);
}

static void print_text(const char *s)
{
	putchar('"');
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			putchar('\\');
		putchar(*s);
	}
	putchar('"');
}

static void print_numbers(const char *key, unsigned n, const uint64_t *v)
{
	printf(", \"%s\": [", key);
	for (unsigned i = 0; i < n; i++)
		printf("%s%" PRIu64, i ? ", " : "", v[i]);
	printf("]");
}

static void print_filters(const struct vv_variable *v)
{
	printf(", \"filters\": [");
	for (unsigned i = 0; i < v->n_filters; i++) {
		printf("%s[%u", i ? ", " : "", v->filter[i].id);
		for (unsigned k = 0; k < v->filter[i].n_values; k++)
			printf(", %" PRIu32, v->filter[i].value[k]);
		printf("]");
	}
	printf("]");
}

static void print_variable(const struct vv_variable *v)
{
	printf("{\"name\": ");
	print_text(v->name);
	printf(", \"type\": \"%s\", \"width\": %" PRIu32 ", \"swapped\": %d, \"variable_length\": %d, \"partial\": %d, \"chunked\": %d",
	       vv_head_type_name(v->type), v->width, v->swapped, v->variable_length, v->partial, v->chunked);
	print_numbers("shape", v->ndim, v->dim);
	print_numbers("chunk", v->chunked ? v->ndim : 0, v->chunk);
	print_filters(v);
	printf(", \"fill\": \"");
	for (unsigned i = 0; i < v->n_fill; i++)
		printf("%02x", v->fill[i]);
	printf("\"}");
}

static void print_bytes(const struct vv_reader_file *f, const struct vv_variable *v, const struct vv_outline_piece *p)
{
	uint64_t len = v->width;
	uint8_t *raw = malloc(p->len), *whole = NULL, digest[VV_SHA256_BYTES];
	char hex[VV_SHA256_HEX];
	bool ok;

	for (unsigned i = 0; i < v->ndim; i++)
		len *= v->chunked ? v->chunk[i] : v->dim[i];
	CHECK(len < 1 << 28);
	whole = malloc(len);
	CHECK(raw && whole && f->read(f->arg, p->at, raw, p->len) == 0);
	ok = !p->coded || vv_filter_undo(v, p->mask, raw, p->len, whole, len) == 0;
	vv_sha256_of(p->coded ? whole : raw, p->coded ? len : p->len, digest);
	vv_sha256_hex(digest, hex);
	printf(ok ? ", \"%s\"" : ", null", hex);
	free(raw);
	free(whole);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void outline(const char *path, bool bytes)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	struct vv_outline o = { 0 };
	struct vv_reader_file f = { .name = path, .read = read_at, .arg = &fd };
	double start;

	CHECK(fd >= 0 && fstat(fd, &st) == 0);
	f.len = (uint64_t)st.st_size;
	start = now();
	if (vv_reader_outline(&f, &o)) {
		fprintf(stderr, "%s: %s\n", path, vv_err_last());
		exit(1);
	}
	printf("{\"seconds\": %.6f, \"zlib\": %d, \"format\": \"%s\", \"variables\": [", now() - start, vv_deflate_built(), o.format);
	for (size_t i = 0; i < o.n_variables; i++) {
		printf(i ? ", " : "");
		print_variable(&o.variable[i]);
	}
	printf("], \"pieces\": [");
	for (size_t i = 0; i < o.n_pieces; i++) {
		const struct vv_outline_piece *p = &o.piece[i];

		printf("%s[%" PRIu32 ", %" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %d, %" PRIu32, i ? ", " : "", p->variable, p->at, p->len, p->ordinal,
		       p->coded, p->mask);
		if (bytes)
			print_bytes(&f, &o.variable[p->variable], p);
		printf("]");
	}
	printf("]}\n");
	vv_reader_outline_fini(&o);
	close(fd);
}

int main(int argc, char **argv)
{
	bool bytes = argc > 1 && strcmp(argv[1], "-b") == 0;

	for (int i = bytes ? 2 : 1; i < argc; i++)
		outline(argv[i], bytes);
	return 0;
}
