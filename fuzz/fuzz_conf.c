/* The input as a configuration file, as an option string, and as the value of an option of each kind. Whatever it says,
 * every value stays one that its row allows, and a value that was taken is taken again. */
#include "base/conf.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct vv_conf_item items[] = {
	{ .name = "text", .kind = VV_CONF_TEXT, .initial = "" },
	{ .name = "flag", .kind = VV_CONF_BOOL, .initial = "no" },
	{ .name = "keep-every", .kind = VV_CONF_COUNT, .initial = "3", .min = 1, .max = 1000 },
	{ .name = "count", .kind = VV_CONF_COUNT, .initial = "0" },
	{ .name = "block_size", .kind = VV_CONF_SIZE, .initial = "1MiB", .min = 4096, .max = 1ull << 26 },
	{ .name = "size", .kind = VV_CONF_SIZE, .initial = "0" },
	{ .name = "time", .kind = VV_CONF_DURATION, .initial = "10m" },
	{ .name = "share", .kind = VV_CONF_FRACTION, .initial = "2%" },
	{ .name = "buffer", .kind = VV_CONF_SHARE, .initial = "16MiB", .min = 1, .max = 1ull << 40 },
	{ .name = "codec", .kind = VV_CONF_CHOICE, .initial = "lz4", .words = "none|lz4|zstd[:N]|auto" },
};
enum { N = sizeof(items) / sizeof(items[0]) };

static void insist(int true_thing)
{
	if (!true_thing)
		abort();
}

static void check_all(const struct vv_conf *c)
{
	uint64_t keep = vv_conf_number(c, "keep_every"), block = vv_conf_number(c, "block-size");
	double time = vv_conf_real(c, "time"), share = vv_conf_real(c, "share");
	uint64_t buffer = vv_conf_share(c, "buffer", 1ull << 40);
	const char *codec = vv_conf_text(c, "codec");

	insist(keep >= 1 && keep <= 1000);
	insist(block >= 4096 && block <= 1u << 26);
	insist(vv_conf_number(c, "count") <= 1ull << 63 && vv_conf_number(c, "size") <= 1ull << 63);
	insist(isfinite(time) && time >= 0);
	insist(share >= 0 && share <= 1);
	insist(buffer <= 1ull << 40);
	insist(strlen(vv_conf_text(c, "text")) < 4096);
	insist(!strcmp(codec, "none") || !strcmp(codec, "lz4") || !strcmp(codec, "auto") || !strncmp(codec, "zstd", 4));
	(void)vv_conf_bool(c, "flag");
	for (size_t i = 0; i < N; i++)
		insist(vv_conf_origin(c, items[i].name)[0] != '\0');
}

static void set_again(struct vv_conf *c)
{
	for (size_t i = 0; i < N; i++) {
		char *text = strdup(vv_conf_text(c, items[i].name));

		insist(text != NULL);
		insist(vv_conf_set(c, items[i].name, text, "again") == 0);
		free(text);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct vv_conf c;

	insist(text && vv_conf_init(&c, items, N) == 0);
	memcpy(text, data, size);
	text[size] = '\0';
	(void)vv_conf_parse(&c, (const char *)data, size, "input");
	check_all(&c);
	(void)vv_conf_read_string(&c, text, "string");
	check_all(&c);
	for (size_t i = 0; i < N; i++)
		(void)vv_conf_set(&c, items[i].name, text, "value");
	check_all(&c);
	set_again(&c);
	vv_conf_fini(&c);
	free(text);
	return 0;
}
