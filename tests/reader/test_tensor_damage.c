// Files of tensors from the corpus of the fuzzer, cut short and damaged everywhere, with reads and allocations that fail: outlines stay sound.
#include "reader/pickle.h"
#include "support/outlines.h"
#include "vv_test.h"

static uint8_t *read_whole(const char *name, size_t *n)
{
	char path[4096];
	uint8_t *p = malloc(1 << 20);
	FILE *f;

	snprintf(path, sizeof(path), "%s/fuzz/corpus/reader/%s", getenv("VARVE_SOURCE"), name);
	f = fopen(path, "rb");
	CHECK(p && f);
	*n = fread(p, 1, 1 << 20, f);
	CHECK(*n > 0 && *n < 1 << 20);
	fclose(f);
	return p;
}

static void damage(const char *name, const char *format, size_t variables, const char *one)
{
	struct vv_outline o;
	size_t n;
	uint8_t *p = read_whole(name, &n);

	o = outlines_get(p, n, name, format);
	CHECK_EQ(o.n_variables, variables);
	CHECK(outlines_find(&o, one, NULL)->ndim > 0);
	vv_reader_outline_fini(&o);
	outlines_damage(p, n, 700, name);
	free(p);
}

// A pickle by hand: {'a': (1, 300), 'b': f(2), 'c': [shared, shared]}.
static void reads_values(void)
{
	static const char text[] = "\x80\x04}q\x00(X\x01\x00\x00\x00"
				   "aK\x01M\x2c\x01\x86"
				   "\x8c\x01"
				   "bcmod\nf\nK\x02\x85R"
				   "U\x01"
				   "c]q\x05(h\x00h\x00"
				   "eu.";
	struct vv_pickle p;
	uint64_t v = 0;
	uint32_t x;

	CHECK_EQ(vv_pickle_read((const uint8_t *)text, sizeof(text) - 1, &p), 0);
	CHECK_EQ(vv_pickle_at(&p, p.root)->kind, VV_PICKLE_DICT);
	CHECK_EQ(vv_pickle_at(&p, p.root)->n, 6);
	x = vv_pickle_lookup(&p, p.root, "a");
	CHECK(vv_pickle_count(&p, vv_pickle_element(&p, x, 1), &v) && v == 300);
	CHECK_EQ(vv_pickle_element(&p, x, 2), 0);
	x = vv_pickle_lookup(&p, p.root, "b");
	CHECK_EQ(vv_pickle_at(&p, x)->kind, VV_PICKLE_CALL);
	CHECK(vv_pickle_is(&p, vv_pickle_element(&p, x, 0), "f"));
	CHECK(vv_pickle_count(&p, vv_pickle_element(&p, vv_pickle_element(&p, x, 1), 0), &v) && v == 2);
	x = vv_pickle_lookup(&p, p.root, "c");
	CHECK_EQ(vv_pickle_element(&p, x, 0), p.root);
	CHECK_EQ(vv_pickle_element(&p, x, 1), p.root);
	CHECK_EQ(vv_pickle_lookup(&p, p.root, "d"), 0);
	vv_pickle_fini(&p);
	for (size_t n = 0; n < sizeof(text) - 1; n++) { // cut short: no root
		CHECK_EQ(vv_pickle_read((const uint8_t *)text, n, &p), 0);
		CHECK_EQ(p.root, 0);
		vv_pickle_fini(&p);
	}
}

// A dictionary of 1000 keys: the last ones are not looked for.
static void bounds_lookups(void)
{
	static uint8_t text[3 + 1000 * 7 + 2];
	size_t n = 0;
	struct vv_pickle p;

	memcpy(text, "\x80\x04}(", n = 4);
	for (int i = 0; i < 1000; i++)
		n += (size_t)sprintf((char *)text + n, "U\x03%03dN", i);
	memcpy(text + n, "u.", 2);
	n += 2;
	CHECK_EQ(vv_pickle_read(text, n, &p), 0);
	CHECK_EQ(vv_pickle_at(&p, p.root)->n, 2000);
	for (uint32_t i = 0; i < 1000; i++) /* None is value 0: the key is told from an absent one by a mark */
		p.cell[p.cell[p.value[p.root].first + 2 * i].next].value = p.root;
	CHECK_EQ(vv_pickle_lookup(&p, p.root, "000"), p.root);
	CHECK_EQ(vv_pickle_lookup(&p, p.root, "063"), p.root);
	CHECK_EQ(vv_pickle_lookup(&p, p.root, "999"), 0);
	vv_pickle_fini(&p);
}

int main(void)
{
	reads_values();
	bounds_lookups();
	damage("state.pt", "torch", 4, "/model/fc.weight");
	damage("wide.pt", "torch", 1, "/wide");
	damage("two.distcp", "torch", 2, "/two/1");
	damage("model.safetensors", "safetensors", 3, "/fc.weight");
	return 0;
}
