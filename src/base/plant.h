/* Planted bugs. A gate that cannot fail is worthless, so a build with -DMUSTER_PLANT=<name> carries
 * one known bug, and `make test-planted` shows that the tests catch it. An ordinary build has none:
 * PLANTED() is then a constant 0 and its branch is not compiled in. */
#pragma once

enum plant {
    PLANT_none,
    PLANT_slot_after_ack, /* the slot is counted when the server has acknowledged, not when chosen
                           */
    PLANT_answer_before_commit,  /* effects leave as soon as they are made */
    PLANT_repeat_before_durable, /* a repeated request is answered past the batches it rests on */
    PLANT_heartbeat_overwrites,  /* the reported count replaces what we reserved */
    PLANT_late_ack_accepted,   /* an ACK from a server that was given up still opens the session */
    PLANT_cancel_forgotten,    /* an owed CANCEL does not survive a restart */
    PLANT_wall_clock_liveness, /* silence is measured with the wall clock */
    PLANT_read_before_durable, /* a list is shown before what it shows is stored */
    PLANT_key_ignored,         /* a repeated request of an operator is done again */
    PLANT_revoked_accepted,    /* a revoked token still lets somebody in */
    PLANT_shown_before_stored, /* readers of changes see a batch when its commit begins */
    PLANT_seat_counted_late,   /* a seat in a room counts when its player has joined */
    PLANT_reservation_lost,    /* reservations in rooms do not survive a restart */
    PLANT_reservation_hurried, /* a reservation runs on while its host is away */
    PLANT_key_taken_twice,     /* the key of a seat lets in whoever comes with it */
    PLANT_banned_admitted,     /* a ban keeps nobody out of rooms */
    PLANT_kill_by_pid,         /* processes are signalled by their number, whose it may be now */
    PLANT_port_freed_early,    /* a port is given again while the process that had it is ending */
    PLANT_old_seat_first,      /* a player's old seat is given up before he has the new one */
    PLANT_queue_window,        /* a seat that comes free is offered to the line at the next tick */
    PLANT_redelivery_takes_twice, /* a request that is delivered again takes another seat */
    PLANT_start_without_players,  /* a lobby starts when its server is there */
    PLANT_abort_forgets_slot,     /* an aborted lobby's server is not told to let go of it */
    PLANT_ids_not_ahead,          /* numbers of the time that a restore has lost are given again */
    PLANT_unfenced_commit,        /* a batch is stored whoever leads the cell */
    PLANT_blind_retry,            /* a batch whose commit had no answer is sent again */
    PLANT_lease_to_the_end,       /* a lease has no margin for clocks that do not run alike */
    PLANT_lease_from_answer,      /* a lease counts from when it was granted, not from when it was
                                     asked for */
    PLANT_takeover_by_wall_clock, /* a standby goes on with the time that its wall clock says */
    PLANT_refused_early,      /* servers that are not back yet after a start are taken to be gone */
    PLANT_fault_of_host,      /* whatever keeps a server from starting is its host's fault */
    PLANT_outage_counts_each, /* each failure of one outage makes the pause longer */
    PLANT_settings_blame_version, /* what one player asked for is held against the version */
    PLANT_token_reconfigured, /* seats change their tokens when their fleet is configured anew */
    PLANT_far_room_first,     /* a room that is far comes before a host that is near */
    PLANT_region_not_kept,    /* who waits or tries another host may be placed in any region */
};

#ifndef MUSTER_PLANT
#define MUSTER_PLANT none
#endif

#define PLANT_CAT_(a, b) a##b
#define PLANT_CAT(a, b) PLANT_CAT_(a, b)
#define PLANTED(name) (PLANT_CAT(PLANT_, MUSTER_PLANT) == PLANT_##name)
