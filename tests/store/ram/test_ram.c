/* A store in memory: the common suite, and how long it lives. */
#include "base/err.h"
#include "base/mem.h"
#include "store/store.h"
#include "support/storesuite.h"
#include "vv_test.h"

/* A place lives as long as somebody has it open. */
static void lifetime(void)
{
	struct vv_store_options opt = { .create = true };
	struct vv_store *a = NULL, *b = NULL;
	uint8_t *p = NULL;
	size_t n = 0;

	CHECK_EQ(vv_store_open("mem:life", &opt, &a), 0);
	CHECK_EQ(vv_store_put(a, "x", "1", 1), 0);
	CHECK_EQ(vv_store_open("mem:life", &opt, &b), 0);
	vv_store_close(a);
	CHECK_EQ(vv_store_get(b, "x", 1, &p, &n), 0);
	vv_mem_free(p);
	CHECK_EQ(vv_store_open("mem:other", &opt, &a), 0);
	CHECK_EQ(vv_store_get(a, "x", 1, &p, &n), VV_ENOENT);
	vv_store_close(a);
	vv_store_close(b);
	CHECK_EQ(vv_store_open("mem:life", &opt, &a), 0);
	CHECK_EQ(vv_store_get(a, "x", 1, &p, &n), VV_ENOENT);
	vv_store_close(a);
}

/* A want of memory anywhere is an error, and the store as it was. */
static void want_of_memory(void)
{
	struct vv_store_options opt = { .create = true };
	struct vv_store *keeper = NULL;

	CHECK_EQ(vv_store_open("mem:want", &opt, &keeper), 0);
	for (long n = 1, asked = n; asked >= n; n++) {
		struct vv_store *s = NULL;
		struct vv_lock *l = NULL;
		int rc;

		vv_mem_fail_at(n);
		rc = vv_store_open("mem:want", &opt, &s);
		if (rc == 0)
			rc = vv_store_lock(s, "lock", &l);
		if (rc == 0)
			rc = vv_store_put(s, "x", "12345", 5);
		asked = vv_mem_asked();
		vv_mem_fail_at(0);
		CHECK(rc == 0 || rc == VV_ENOMEM);
		CHECK_EQ(rc == 0, asked < n);
		vv_store_unlock(l);
		vv_store_close(s);
	}
	vv_store_close(keeper);
}

int main(void)
{
	storesuite_run("mem:suite");
	lifetime();
	want_of_memory();
	return 0;
}
