/* Records: equal ones are one object, also from several threads; what the format does not allow is refused, with a reason; bytes
 * that are damaged are refused or are another record, with one encoding. */
#include "base/err.h"
#include "core/format/head.h"
#include "core/format/record.h"
#include "vv_test.h"
#include <pthread.h>

static const struct vv_record_field particle[] = {
	{ "mass", VV_TYPE_F64, 24, 8 }, { "x", VV_TYPE_F64, 0, 24 }, { "id", VV_TYPE_I32, 32, 4 }, { "kind", VV_TYPE_U8, 36, 1 },
};

static const struct vv_record *find(uint64_t bytes, const struct vv_record_field *field, size_t n)
{
	const struct vv_record *r = NULL;

	CHECK_EQ(vv_record_find("p", bytes, field, n, &r), 0);
	return r;
}

static void test_same(void)
{
	const struct vv_record *a = find(40, particle, 4);
	struct vv_record_field other[4];

	CHECK_EQ(a->n, 4);
	CHECK_STR(a->field[0].name, "x");
	CHECK_STR(a->field[3].name, "kind");
	for (int i = 0; i < 4; i++) /* another order, and other bytes after the names */
		memset(&other[3 - i], 0x5a, sizeof(other[0])), strcpy(other[3 - i].name, particle[i].name),
			other[3 - i].type = particle[i].type, other[3 - i].offset = particle[i].offset, other[3 - i].bytes = particle[i].bytes;
	CHECK(find(40, other, 4) == a);
	CHECK(find(48, particle, 4) != a);
	CHECK(find(40, particle, 3) != a);
	other[0].bytes = 2;
	CHECK(find(40, other, 4) != a);
}

static void refused(uint64_t bytes, const struct vv_record_field *field, size_t n, const char *reason)
{
	const struct vv_record *r = NULL;

	CHECK_EQ(vv_record_find("p", bytes, field, n, &r), VV_EINVAL);
	CHECK(r == NULL);
	if (!strstr(vv_err_last(), reason) || !strstr(vv_err_last(), "'p'"))
		fprintf(stderr, "%s\n", vv_err_last());
	CHECK(strstr(vv_err_last(), reason) && strstr(vv_err_last(), "'p'"));
}

static void test_refused(void)
{
	static struct vv_record_field many[VV_RECORD_FIELDS + 1];
	struct vv_record_field f[2] = { { "a", VV_TYPE_I32, 0, 4 }, { "b", VV_TYPE_I32, 4, 4 } };

#define REFUSED(change, reason) \
	do { \
		struct vv_record_field keep = f[1]; \
		change; \
		refused(8, f, 2, reason); \
		f[1] = keep; \
	} while (0)
	find(8, f, 2);
	refused(8, f, 0, "limits");
	refused(0, f, 2, "limits");
	refused(VV_RECORD_BYTES + 1, f, 2, "limits");
	refused(VV_RECORD_BYTES, many, VV_RECORD_FIELDS + 1, "limits");
	refused(7, f, 2, "'b' ends after");
	REFUSED(f[1].offset = 3, "overlap");
	REFUSED(f[1].offset = UINT32_MAX, "ends after");
	REFUSED(f[1].bytes = 3, "multiple");
	REFUSED(f[1].bytes = 0, "multiple");
	REFUSED(f[1].bytes = UINT32_MAX - 3, "ends after");
	REFUSED(f[1].type = VV_TYPE_BYTES + VV_TYPES, "multiple");
	REFUSED(strcpy(f[1].name, "a"), "two fields");
	REFUSED(f[1].name[0] = 0, "name");
	REFUSED(strcpy(f[1].name, "a b"), "name");
	REFUSED(strcpy(f[1].name, "')]"), "name");
}

static void test_wire(void)
{
	const struct vv_record *a = find(40, particle, 4), *b = NULL;
	struct vv_buf out = { 0 }, again = { 0 };
	struct vv_wire w;

	vv_record_put(a, &out);
	w = vv_wire_over(out.p, out.n);
	CHECK_EQ(vv_record_get("p", &w, &b), 0);
	CHECK(a == b && vv_wire_left(&w) == 0);
	for (size_t n = 0; n < out.n; n++) {
		w = vv_wire_over(out.p, n);
		CHECK(vv_record_get("p", &w, &b) < 0);
	}
	for (size_t i = 0; i < out.n; i++) {
		for (int v = 0; v < 256; v++) {
			uint8_t was = out.p[i];
			int rc;

			out.p[i] = (uint8_t)v;
			w = vv_wire_over(out.p, out.n);
			rc = vv_record_get("p", &w, &b);
			if (rc == 0 && vv_wire_left(&w) == 0) {
				again.n = 0;
				vv_record_put(b, &again);
				CHECK_EQ(again.n, out.n);
				CHECK(memcmp(again.p, out.p, out.n) == 0);
			}
			out.p[i] = was;
		}
	}
	vv_buf_fini(&out);
	vv_buf_fini(&again);
}

enum { THREADS = 4, KINDS = 200 };
static const struct vv_record *found[THREADS][KINDS];

static void *find_many(void *arg)
{
	for (uint32_t i = 0; i < KINDS; i++)
		found[(size_t)arg][i] = find(1000 + i, particle, 4);
	return NULL;
}

static void test_threads(void)
{
	pthread_t thread[THREADS];

	for (size_t t = 0; t < THREADS; t++)
		CHECK_EQ(pthread_create(&thread[t], NULL, find_many, (void *)t), 0);
	for (size_t t = 0; t < THREADS; t++)
		CHECK_EQ(pthread_join(thread[t], NULL), 0);
	for (size_t t = 1; t < THREADS; t++)
		CHECK(memcmp(found[t], found[0], sizeof(found[0])) == 0);
}

static void test_limit(void)
{
	const struct vv_record *r = NULL, *a = find(40, particle, 4);
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < 1u << 20; i++)
		rc = vv_record_find("p", 2000 + i, particle, 4, &r);
	CHECK_EQ(rc, VV_ENOMEM);
	CHECK(strstr(vv_err_last(), "limit"));
	CHECK(find(40, particle, 4) == a); /* known ones are still found */
}

int main(void)
{
	test_same();
	test_refused();
	test_wire();
	test_threads();
	test_limit();
	return 0;
}
