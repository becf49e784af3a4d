/* Lays down epochs with known content, for the tests of the command:
 *
 *	writer_check STORE LINEAGE OPTIONS WORD...
 *
 *	region NAME TYPE SHAPE   declares a region of zeros: f64 10x20, bytes 4096
 *	load NAME FILE           its content is the file's
 *	poke NAME OFFSET HEX     changes some of it
 *	unprotect NAME           takes it out again
 *	checkpoint               lays down an epoch and prints its number
 *	tick NAME N              N epochs, each with the region's first 8 bytes one higher
 *	restart EPOCH            continues from there; 0: the newest
 *	dump NAME FILE           writes what it holds
 *	hold                     stays until the standard input ends
 */
#include "support/settle.h"
#include "vv_test.h"
#include <stdint.h>
#include <unistd.h>
#include <varve/varve.h>

enum { REGIONS = 64 };

struct region {
	const char *name;
	uint8_t *p;
	size_t len;
};

static struct region region[REGIONS];
static size_t n_regions;

static void need(int rc)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "writer_check: %s\n", varve_last_error());
	exit(2);
}

static struct region *find(const char *name)
{
	for (size_t i = 0; i < n_regions; i++)
		if (strcmp(region[i].name, name) == 0)
			return &region[i];
	fprintf(stderr, "writer_check: no region '%s'\n", name);
	exit(2);
}

static int type_of(const char *word, size_t *size)
{
	static const struct {
		const char *name;
		size_t size;
	} types[] = {
		{ "bytes", 1 }, { "i8", 1 },  { "u8", 1 },  { "i16", 2 }, { "u16", 2 }, { "i32", 4 },  { "u32", 4 },
		{ "i64", 8 },   { "u64", 8 }, { "f32", 4 }, { "f64", 8 }, { "c64", 8 }, { "c128", 16 },
	};

	for (int i = 0; i < (int)(sizeof(types) / sizeof(types[0])); i++)
		if (strcmp(types[i].name, word) == 0) {
			*size = types[i].size;
			return i;
		}
	fprintf(stderr, "writer_check: no type '%s'\n", word);
	exit(2);
}

static void declare(varve *v, const char *name, const char *type_word, char *shape_word)
{
	size_t shape[VARVE_MAX_DIMS], size = 0, len;
	int ndim = 0, type = type_of(type_word, &size);
	struct region *r = &region[n_regions++];

	CHECK(n_regions <= REGIONS);
	len = size;
	for (char *save = NULL, *s = strtok_r(shape_word, "x", &save); s; s = strtok_r(NULL, "x", &save)) {
		shape[ndim] = strtoull(s, NULL, 10);
		len *= shape[ndim++];
	}
	*r = (struct region){ name, calloc(len + 1, 1), len };
	CHECK(r->p);
	need(type == VARVE_BYTES ? varve_protect(v, name, r->p, len) :
				   varve_protect_array(v, name, r->p, (enum varve_type)type, ndim, shape));
}

static void load(const struct region *r, const char *path)
{
	FILE *f = fopen(path, "rb");

	CHECK(f);
	CHECK_EQ(fread(r->p, 1, r->len, f), r->len);
	fclose(f);
}

static void dump(const struct region *r, const char *path)
{
	FILE *f = fopen(path, "wb");

	CHECK(f);
	CHECK_EQ(fwrite(r->p, 1, r->len, f), r->len);
	CHECK_EQ(fclose(f), 0);
}

static void poke(const struct region *r, const char *offset, const char *hex)
{
	size_t at = strtoull(offset, NULL, 10);

	for (; hex[0] && hex[1]; hex += 2, at++) {
		const char two[3] = { hex[0], hex[1], '\0' };

		CHECK(at < r->len);
		r->p[at] = (uint8_t)strtoul(two, NULL, 16);
	}
}

static void checkpoint(varve *v)
{
	need(settle_checkpoint(v));
	printf("%llu\n", (unsigned long long)varve_epoch(v));
	fflush(stdout);
}

static void tick(varve *v, const struct region *r, long n)
{
	uint64_t count;

	CHECK(r->len >= sizeof(count));
	while (n-- > 0) {
		memcpy(&count, r->p, sizeof(count));
		count++;
		memcpy(r->p, &count, sizeof(count));
		need(settle_checkpoint(v));
	}
}

/* One word and what belongs to it; how many were used. */
static int act(varve *v, char **w)
{
	if (strcmp(w[0], "region") == 0)
		return declare(v, w[1], w[2], w[3]), 4;
	if (strcmp(w[0], "load") == 0)
		return load(find(w[1]), w[2]), 3;
	if (strcmp(w[0], "dump") == 0)
		return dump(find(w[1]), w[2]), 3;
	if (strcmp(w[0], "poke") == 0)
		return poke(find(w[1]), w[2], w[3]), 4;
	if (strcmp(w[0], "unprotect") == 0)
		return need(varve_unprotect(v, w[1])), 2;
	if (strcmp(w[0], "checkpoint") == 0)
		return checkpoint(v), 1;
	if (strcmp(w[0], "tick") == 0)
		return tick(v, find(w[1]), strtol(w[2], NULL, 10)), 3;
	if (strcmp(w[0], "restart") == 0)
		return need(varve_restart(v, w[1][0] == '0' ? VARVE_LATEST : strtoull(w[1], NULL, 10))), 2;
	if (strcmp(w[0], "hold") == 0) {
		printf("held\n");
		fflush(stdout);
		while (getchar() != EOF)
			continue;
		return 1;
	}
	fprintf(stderr, "writer_check: unknown word '%s'\n", w[0]);
	exit(2);
}

int main(int argc, char **argv)
{
	varve *v = NULL;

	if (argc < 4) {
		fprintf(stderr, "usage: writer_check STORE LINEAGE OPTIONS WORD...\n");
		return 2;
	}
	need(varve_open(argv[1], argv[2], argv[3], &v));
	for (int i = 4; i < argc;)
		i += act(v, &argv[i]);
	need(varve_close(v));
	for (size_t i = 0; i < n_regions; i++)
		free(region[i].p);
	return 0;
}
