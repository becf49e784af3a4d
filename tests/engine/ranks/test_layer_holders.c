// ctest: PROCESSORS 2
/* Ranks with stores of their own. Several stores have a layer, and that of the first one is damaged: its bytes come from the next one. */
#include "support/hosts.h"

enum { RANKS = 3, EPOCHS = 6 };

/* The place gets the layer of a rank, with a part of its bytes changed, or without its end. */
static void put_damaged(const struct hosts *r, uint32_t place, int epoch, uint32_t rank, bool shorter)
{
	char from[PLACE_MAX + 64], to[PLACE_MAX + 64];
	uint8_t *p;
	size_t n;

	hosts_object(r, rank, epoch, (int)rank, from);
	hosts_object(r, place, epoch, (int)rank, to);
	p = place_read(from, &n);
	for (size_t i = 200; i < n / 2; i += 64)
		p[i] ^= 0x55;
	place_write(to, p, shorter ? n / 2 : n);
	free(p);
}

static void read_past_damage(const char *options, uint64_t seed, bool shorter)
{
	struct hosts *r = hosts_new(RANKS, seed, options);

	hosts_go(r, 0, 1, EPOCHS);
	for (int e = 1; e <= EPOCHS; e++)
		put_damaged(r, 0, e, 1, shorter); /* rank 2 asks for it there first */
	hosts_go(r, EPOCHS, 0, 0);
	for (int e = 1; e <= EPOCHS; e++)
		put_damaged(r, 2, e, 1, shorter); /* and in its own store */
	hosts_go(r, EPOCHS, EPOCHS + 1, EPOCHS + 2);
	r->end = EPOCHS + 2;
	threadcomm_run(RANKS, hosts_read_all, r);
	hosts_end(r);
}

int main(void)
{
	for (uint64_t seed = 1; seed <= 4; seed++)
		read_past_damage(seed % 2 ? "mode=sync codec=none log=error" : "mode=sync log=error", seed, seed > 2);
	return 0;
}
