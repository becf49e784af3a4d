/* The same with MPI: each rank has a strip of a ring, of which the ends are exchanged, and a communicator of its own, which is not state. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <varve/varve_here.h>

enum { CELLS = 20000 };

struct strip {
	long step;
	MPI_Comm ring;
	uint64_t *cell, *next;
	char **note; /* grows */
	size_t n_notes;
};

int main(int argc, char **argv)
{
	long steps = argc > 1 ? atol(argv[1]) : 50;
	useconds_t nap = argc > 2 ? (useconds_t)atol(argv[2]) : 0;
	uint64_t sum = 0, all = 0;
	int rank, size;
	struct strip *s;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	s = calloc(1, sizeof(*s));
	MPI_Comm_dup(MPI_COMM_WORLD, &s->ring);
	s->cell = calloc(CELLS + 2, sizeof(*s->cell));
	s->next = calloc(CELLS + 2, sizeof(*s->next));
	for (int i = 1; i <= CELLS; i++)
		s->cell[i] = (uint64_t)(rank * CELLS + i) * 2654435761u;
	if (varve_except_here(&s->ring, sizeof(s->ring)) < 0)
		return 4;
	while (s->step < steps) {
		int left = (rank + size - 1) % size, right = (rank + 1) % size;
		uint64_t *swap;

		MPI_Sendrecv(&s->cell[1], 1, MPI_UINT64_T, left, 0, &s->cell[CELLS + 1], 1, MPI_UINT64_T, right, 0, s->ring, MPI_STATUS_IGNORE);
		MPI_Sendrecv(&s->cell[CELLS], 1, MPI_UINT64_T, right, 1, &s->cell[0], 1, MPI_UINT64_T, left, 1, s->ring, MPI_STATUS_IGNORE);
		for (int i = 1; i <= CELLS; i++)
			s->next[i] = s->cell[i - 1] + (s->cell[i] << 1) + s->cell[i + 1] + (s->cell[i] >> 7);
		swap = s->cell;
		s->cell = s->next;
		s->next = swap;
		s->note = realloc(s->note, (s->n_notes + 1) * sizeof(*s->note));
		if (asprintf(&s->note[s->n_notes++], "step %ld: %llu", s->step, (unsigned long long)s->cell[7]) < 0)
			return 3;
		s->step++;
		if (varve_checkpoint_here() < 0)
			return 4;
		if (s->step == 20 && rank == 0 && getenv("LEAVE"))
			exit(9);
		usleep(nap);
	}
	for (int i = 1; i <= CELLS; i++)
		sum = sum * 31 + s->cell[i];
	for (size_t i = 0; i < s->n_notes; i++)
		for (char *p = s->note[i]; *p; p++)
			sum = sum * 7 + (uint64_t)*p;
	MPI_Reduce(&sum, &all, 1, MPI_UINT64_T, MPI_SUM, 0, s->ring);
	if (rank == 0)
		printf("%ld %llx\n", s->step, (unsigned long long)all);
	MPI_Comm_free(&s->ring);
	MPI_Finalize();
	return 0;
}
