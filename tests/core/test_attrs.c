/* Extended attributes: which are kept, and in which order. Their bytes: test_manifest.c. */
#include "core/format/file_attributes.h"
#include "vv_test.h"

static void test_kept(void)
{
	static const char *const kept[] = {"user.a", "user.", "system.posix_acl_access", "system.posix_acl_default",
					   "system.nfs4_acl"};
	static const char *const left[] = {"",
					   "user",
					   "security.capability",
					   "security.selinux",
					   "trusted.user.a",
					   "system.posix_acl_accessx",
					   "System.nfs4_acl"};

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		CHECK(vv_file_attributes_is_kept(kept[i]));
	for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++)
		CHECK(!vv_file_attributes_is_kept(left[i]));
}

static void test_order(void)
{
	static const char *const name[] = {"user.m", "user.a", "user.z", "user.b"};
	struct vv_file_attributes a = {0}, b = {0};

	for (size_t i = 0; i < 4; i++) {
		CHECK_EQ(vv_file_attributes_add(&a, name[i], name[i], i), 0);
		CHECK_EQ(vv_file_attributes_add(&b, name[3 - i], name[3 - i], 3 - i), 0);
	}
	CHECK(vv_file_attributes_equal(&a, &b));
	CHECK_STR(a.v[0].name, "user.a");
	CHECK_STR(a.v[3].name, "user.z");
	b.v[1].len = 0;
	CHECK(!vv_file_attributes_equal(&a, &b));
	vv_file_attributes_fini(&a);
	vv_file_attributes_fini(&b);
}

/* Every file of NFSv4 has a list; one that names somebody is kept. */
static void test_trivial(void)
{
	static const uint8_t modes[] = "\0\0\0\2"
				       "\0\0\0\0\0\0\0\0\0\0\0\7\0\0\0\6OWNER@\0\0"
				       "\0\0\0\0\0\0\0\0\0\0\0\7\0\0\0\11EVERYONE@\0\0";
	static const uint8_t names[] = "\0\0\0\2"
				       "\0\0\0\0\0\0\0\0\0\0\0\7\0\0\0\6OWNER@\0\0"
				       "\0\0\0\0\0\0\0\0\0\0\0\7\0\0\0\11ann@b.org\0\0";

	CHECK(vv_file_attributes_is_trivial("system.nfs4_acl", modes, sizeof(modes)));
	CHECK(!vv_file_attributes_is_trivial("user.a", modes, sizeof(modes)));
	CHECK(!vv_file_attributes_is_trivial("system.nfs4_acl", names, sizeof(names)));
	for (size_t n = 0; n < 4 + 24 + 16 + 9; n++) {
		uint8_t *copy = malloc(n + 1); /* of its own, so that a sanitizer sees its end */

		CHECK(copy);
		memcpy(copy, modes, n);
		CHECK(!vv_file_attributes_is_trivial("system.nfs4_acl", copy, n));
		free(copy);
	}
}

int main(void)
{
	test_kept();
	test_order();
	test_trivial();
	return 0;
}
