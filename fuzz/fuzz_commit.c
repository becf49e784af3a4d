/* The input as a commit record and as a lineage record: as it is, and with a right check and magic. What is taken encodes
 * to the same bytes. And the input as the name of a label's object: what is taken makes the same name. */
#include "core/format/commit.h"
#include "core/format/name.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void insist(int true_thing)
{
	if (!true_thing)
		abort();
}

static void use_commit(const uint8_t *p, size_t n)
{
	struct vv_commit c = { 0 };
	struct vv_buf b = { 0 };

	if (vv_commit_get(&c, p, n) == 0) {
		vv_commit_put(&c, &b);
		insist(b.n == n && memcmp(b.p, p, n) == 0);
	}
	vv_commit_fini(&c);
	vv_buf_fini(&b);
}

static void use_lineage(const uint8_t *p, size_t n)
{
	struct vv_buf b = { 0 };
	uint64_t time_ns = 0;
	uint8_t id[16];

	if (vv_commit_get_lineage(id, &time_ns, p, n) == 0) {
		vv_commit_put_lineage(id, time_ns, &b);
		insist(b.n == n && memcmp(b.p, p, n) == 0);
	}
	vv_buf_fini(&b);
}

static void use_name(const uint8_t *p, size_t n)
{
	char name[VV_NAME_MAX], made[VV_NAME_MAX], label[VV_NAME_LABEL_MAX + 1];
	uint64_t epoch;

	if (n >= sizeof(name))
		return;
	memcpy(name, p, n);
	name[n] = '\0';
	if (!vv_name_parse_label(name, &epoch, label))
		return;
	insist(vv_name_check_label(label) == 0);
	vv_name_label(made, "x", epoch, label);
	insist(strcmp(strrchr(made, '/') + 1, name) == 0);
}

static void make_right(uint8_t *p, size_t n, const char *magic)
{
	uint64_t check;

	memcpy(p, magic, 8);
	check = vv_digest_check(p, n - 8);
	for (int i = 0; i < 8; i++)
		p[n - 8 + (size_t)i] = (uint8_t)(check >> (8 * i));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;

	use_commit(data, size);
	use_lineage(data, size);
	use_name(data, size);
	if (size < 16)
		return 0;
	copy = malloc(size);
	insist(copy != NULL);
	memcpy(copy, data, size);
	make_right(copy, size, "VARVECMT");
	use_commit(copy, size);
	make_right(copy, size, "VARVELIN");
	use_lineage(copy, size);
	free(copy);
	return 0;
}
