/* The protocol between `varve run` and libvarve_preload.so: names in the environment of the
 * program, and the lines by which the program reports events.
 *
 * Each event is one line, appended by one write: a word, the epoch, and for some events a sentence.
 * The last four always have a sentence; "restored" and "taken" may have one:
 *
 *	restored 17             the heap is that of epoch 17. With a sentence: part of it is
 *	                        unreachable
 *	fresh 0                 there was nothing to restore
 *	taken 18                a checkpoint was taken; the program continues. With a sentence:
 *	                        it is not committed before the next call
 *	durable 18              the checkpoint is durable
 *	failed 18 SENTENCE      the checkpoint failed; the program continues. Epoch 0: it was
 *	                        not even taken
 *	damaged 17 SENTENCE     the epoch cannot be read: an older one may be readable
 *	refused 17 SENTENCE     the epoch can be read, but the program has changed or has
 *	                        allocated differently. (After damaged and refused the program
 *	                        exits with VV_RUN_PROTOCOL_REFUSED.)
 *	unable 0 SENTENCE       no checkpoints can be taken (the store, MPI); the program
 *	                        continues without them */
#ifndef VV_ENGINE_RUN_PROTOCOL_H
#define VV_ENGINE_RUN_PROTOCOL_H

#define VV_RUN_PROTOCOL_STORE "VARVE_RUN_STORE"
#define VV_RUN_PROTOCOL_LINEAGE "VARVE_RUN_LINEAGE"
/* "latest" (the default), "none", or the number of an epoch */
#define VV_RUN_PROTOCOL_RESTART "VARVE_RUN_RESTART"
/* "1": .data and .bss of the executable belong to the state */
#define VV_RUN_PROTOCOL_GLOBALS "VARVE_RUN_GLOBALS"
/* "1": a restart frees the objects to which nothing in the state points */
#define VV_RUN_PROTOCOL_FREE_UNREACHABLE "VARVE_RUN_FREE_UNREACHABLE"
/* more libraries whose memory is not part of the state: names between colons */
#define VV_RUN_PROTOCOL_OUTSIDE "VARVE_RUN_OUTSIDE"
/* "off": no search for pointers from the state to the outside */
#define VV_RUN_PROTOCOL_POINTERS "VARVE_RUN_POINTERS"
/* the file to which events are appended; only rank 0 writes */
#define VV_RUN_PROTOCOL_EVENTS "VARVE_RUN_EVENTS"
/* "asked": MPI's thread level is the one that the program requests */
#define VV_RUN_PROTOCOL_MPI "VARVE_RUN_MPI"
/* LOOK-LAST, as in 5-7: engine/session/rehearse.h */
#define VV_RUN_PROTOCOL_REHEARSE "VARVE_RUN_REHEARSE"
/* the address of the heap, in hexadecimal; the same for all runs of a lineage */
#define VV_RUN_PROTOCOL_ARENA "VARVE_RUN_ARENA"

#define VV_RUN_PROTOCOL_PLAN "heap.plan" /* the region with the layout of a captured heap */
#define VV_RUN_PROTOCOL_MARKS "marks/" /* prefix of the regions that mark used parts of the heap */

enum { VV_RUN_PROTOCOL_REFUSED = 76 }; /* exit status */

#endif
