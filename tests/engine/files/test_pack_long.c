// ctest: TIMEOUT 240 COST 2
/* A set of files that is packed again and again, by a command each time: what is known of older epochs comes from the cache of the index, and not from every layer there is. */
#include "engine/files/pack.h"
#include "engine/context.h"
#include "engine/session/session.h"
#include "engine/write/index_cache.h"
#include "support/gen.h"
#include "support/must.h"
#include "support/place.h"
#include <inttypes.h>

enum { FILES = 5, EPOCHS = 135, LONGEST = 300000, RENEWED = 64 };

static char path[FILES][PLACE_MAX], name[FILES][16];
static uint8_t bytes[FILES][LONGEST];

/* Of two files a stretch is new, the others stay as they are. */
static void change(uint64_t *state, unsigned epoch)
{
	for (unsigned i = 0; i < FILES; i++) {
		size_t len = LONGEST / (i + 1), at = gen_below(state, len - 9000);

		if (epoch > 1 && i % 3 != epoch % 3)
			continue;
		if (epoch == 1)
			gen_text(state, bytes[i], len);
		else
			gen_bytes(state, bytes[i] + at, 9000);
		snprintf(name[i], sizeof(name[i]), "f%u", i);
		place_write(place_path(path[i], name[i]), bytes[i], len);
	}
}

static void pack(const char *store, const char *options, unsigned epoch)
{
	struct vv_pack_options how = { .effort = VV_PACK_FAST };
	struct vv_pack_report report = { 0 };
	struct vv_pack_file file[FILES];
	varve *v = NULL;

	for (size_t i = 0; i < FILES; i++)
		file[i] = (struct vv_pack_file){ path[i], name[i], false };
	MUST(vv_session_open(NULL, store, "set", options, &v) == 0);
	MUST(vv_pack_run(v, file, FILES, &how, &report) == 0);
	MUST(report.epoch == epoch);
	MUST(epoch == 1 || report.fresh < 200000); /* what is known is not stored again */
	MUST(v->index_cache->cached == epoch / RENEWED * RENEWED); /* who cannot use it makes it anew each time */
	vv_pack_report_fini(&report);
	varve_close(v);
}

static void test_cache(const char *options)
{
	char store[PLACE_MAX];
	uint64_t state = 1;

	place_remove(place_path(store, "store"));
	for (unsigned e = 1; e <= EPOCHS; e++) {
		must_begin("%s, epoch %u", options, e);
		change(&state, e);
		pack(store, options, e);
	}
}

int main(void)
{
	test_cache("mode=sync threads=1");
	test_cache("mode=sync threads=1 history=1%"); /* of which a part must be forgotten */
	return 0;
}
