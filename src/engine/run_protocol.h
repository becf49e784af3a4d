/* What `varve run` and libvarve_preload.so have agreed on: names in the environment of the program that is run, and the lines in
 * which the program's side tells what happens.
 *
 * Each event is one line, appended by one write: a word, the epoch, and, for the last four and for some that are taken, a sentence.
 *
 *	restored 17             the heap is that of epoch 17
 *	fresh 0                 there was nothing to restore
 *	taken 18                a checkpoint; the program goes on. With a sentence: it is not committed before the next call
 *	durable 18              it will survive
 *	failed 18 SENTENCE      it will not; the program goes on. Epoch 0: it was not even taken
 *	damaged 17 SENTENCE     the epoch cannot be read: an older one may do
 *	refused 17 SENTENCE     it can, but the program is not the one it was, or has allocated otherwise
 *	                        (after both the program exits with VV_RUN_PROTOCOL_REFUSED)
 *	unable 0 SENTENCE       no checkpoints can be taken (the store, MPI); the program goes on without */
#ifndef VV_ENGINE_RUN_PROTOCOL_H
#define VV_ENGINE_RUN_PROTOCOL_H

#define VV_RUN_PROTOCOL_STORE "VARVE_RUN_STORE"
#define VV_RUN_PROTOCOL_LINEAGE "VARVE_RUN_LINEAGE"
#define VV_RUN_PROTOCOL_RESTART "VARVE_RUN_RESTART" /* "latest" (the default), "none", or the number of an epoch */
#define VV_RUN_PROTOCOL_GLOBALS "VARVE_RUN_GLOBALS" /* "1": .data and .bss of the executable belong to the state */
#define VV_RUN_PROTOCOL_OUTSIDE "VARVE_RUN_OUTSIDE" /* further libraries whose memory is not part of the state: names between colons */
#define VV_RUN_PROTOCOL_POINTERS "VARVE_RUN_POINTERS" /* "off": pointers from the state to the outside are not looked for */
#define VV_RUN_PROTOCOL_EVENTS "VARVE_RUN_EVENTS"   /* the file that events are appended to; only rank 0 writes */
#define VV_RUN_PROTOCOL_MPI "VARVE_RUN_MPI"         /* "asked": MPI's thread level is the one that the program asks for */
#define VV_RUN_PROTOCOL_REHEARSE "VARVE_RUN_REHEARSE" /* LOOK-LAST, as in 5-7: engine/session/rehearse.h */
#define VV_RUN_PROTOCOL_ARENA "VARVE_RUN_ARENA"     /* where the heap lies, in hexadecimal; the same for all runs of a lineage */

#define VV_RUN_PROTOCOL_PLAN "heap.plan" /* the region that says where a captured heap lies */
#define VV_RUN_PROTOCOL_MARKS "marks/"   /* regions that say which places of it are in use begin so */

enum { VV_RUN_PROTOCOL_REFUSED = 76 }; /* exit status */

#endif
