/* A network that damages one message: a communicator in front of another that counts what each rank sends and gets, and changes a byte of the one whose turn it is.
 *
 *	damage_begin(&d, ranks);
 *	while (damage_next(&d))
 *		threadcomm_run(ranks, work, &d);   where each rank works with damage_plug(&d, comm)
 *
 * The first time nothing is damaged. Some ranks are late when others already know. A rank that gives up is heard by all others, as with MPI. */
#ifndef VV_TEST_DAMAGE_H
#define VV_TEST_DAMAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <varve/varve_comm.h>

enum { DAMAGE_RANKS = 8, DAMAGE_CHANNELS = 2 };

struct damage {
	uint32_t ranks;
	bool first;          /* the run in which nothing is damaged */
	uint32_t rank;       /* whose messages */
	unsigned channel;
	bool outward;        /* as it goes, or as it comes */
	uint64_t turn;       /* of which one */
	uint64_t seed;       /* of the byte */
	uint64_t n[DAMAGE_CHANNELS]; /* messages of a rank in the first run */
	atomic_bool done;    /* there was one with bytes */
	atomic_bool gone[DAMAGE_CHANNELS];
	struct damage_seat {
		struct damage *d;
		struct varve_comm behind;
		unsigned channel;
		uint64_t begun;
		uint8_t *in, *back; /* what comes; where it belongs if that is a copy */
		size_t n_in;
		uint8_t *copy;      /* of what goes */
		bool turn;
	} seat[DAMAGE_RANKS][DAMAGE_CHANNELS];
	char words[100];     /* what is done this time */
};

void damage_begin(struct damage *d, uint32_t ranks);
bool damage_next(struct damage *d);
/* Of each rank, before it opens a session. */
struct varve_comm damage_plug(struct damage *d, const struct varve_comm *comm);

#endif
