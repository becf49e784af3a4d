/* The input as a parity object: its head as it is, and with a right check; then the plan of its layers, and its end. What is taken encodes
 * to the same bytes. And the input as the name of such an object. */
#include "core/format/name.h"
#include "core/ranks/parity_plan.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void insist(int true_thing)
{
	if (!true_thing)
		abort();
}

static void set_check(uint8_t *p, size_t n)
{
	uint64_t check = vv_digest_check(p, n - 8);

	for (int i = 0; i < 8; i++)
		p[n - 8 + (size_t)i] = (uint8_t)(check >> (8 * i));
}

static void use_end(const struct vv_parity_plan *p, const struct vv_parity_head *h, const uint8_t *end, size_t n)
{
	size_t blocks = (size_t)vv_parity_plan_blocks(h->layer[h->own].len, p->block_len);
	struct vv_parity_checks c;
	struct vv_buf b = { 0 };

	if (vv_parity_checks_get(&c, end, n, (size_t)p->n_parity[h->own], blocks, h->n_layers) < 0)
		return;
	vv_parity_checks_put(&c, h->n_layers, &b);
	insist(b.n == n && memcmp(b.p, end, n) == 0);
	vv_parity_checks_fini(&c);
	vv_buf_fini(&b);
}

static void use_head(const uint8_t *p, size_t n)
{
	struct vv_parity_head h;
	struct vv_parity_plan plan;
	struct vv_buf b = { 0 };
	int64_t len = vv_parity_head_get(&h, p, n, n);
	uint64_t sum = 0;

	if (len < 0 || (size_t)len > n)
		return;
	vv_parity_head_put(&h, &b);
	insist(b.n == (size_t)len && memcmp(b.p, p, b.n) == 0);
	vv_buf_fini(&b);
	for (size_t i = 0; i < h.n_layers; i++)
		sum += h.layer[i].len >> 20;
	/* Long plans are made, too, but not here. */
	if (sum < 64 && h.n_layers < 64 && vv_parity_plan_make(&plan, &h) == 0) {
		if (n - (size_t)len >= plan.parity_len[h.own])
			use_end(&plan, &h, p + len + plan.parity_len[h.own], n - (size_t)len - (size_t)plan.parity_len[h.own]);
		vv_parity_plan_fini(&plan);
	}
	vv_parity_head_fini(&h);
}

static void use_name(const uint8_t *p, size_t n)
{
	char name[VV_NAME_MAX], made[VV_NAME_MAX];
	uint32_t rank, ranks;
	uint64_t epoch;

	if (n >= sizeof(name))
		return;
	memcpy(name, p, n);
	name[n] = '\0';
	if (!vv_name_parse_parity(name, &epoch, &rank, &ranks))
		return;
	vv_name_parity(made, "x", epoch, rank, ranks);
	insist(strcmp(strrchr(made, '/') + 1, name) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;
	uint32_t len = 0;

	use_name(data, size);
	use_head(data, size);
	if (size < 80)
		return 0;
	copy = malloc(size);
	insist(copy != NULL);
	memcpy(copy, data, size);
	memcpy(copy, "VARVEPAR\1\0\0", 12);
	copy[12] = data[12];
	for (int i = 0; i < 4; i++)
		len |= (uint32_t)data[56 + i] << (8 * i);
	if (len >= 80 && len <= size)
		set_check(copy, len);
	if (len < size && size - len >= 8)
		set_check(copy + len, size - len);
	use_head(copy, size);
	free(copy);
	return 0;
}
