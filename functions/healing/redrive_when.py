"""The conditions of the redrive's table; their docstrings stand in docs/redrive-stages.md."""

from __future__ import annotations

from functions.healing.redrive_look import TaskStatus
from functions.healing.redrive_sight import Sight


def always(_sight: Sight) -> bool:
    """always"""
    return True


def foreign_task(sight: Sight) -> bool:
    """a move task runs that this redrive did not start"""
    return sight.has_foreign_task


def task_failed(sight: Sight) -> bool:
    """its task has failed"""
    return sight.task is not None and sight.task.status is TaskStatus.FAILED


def cancelled_in_vain(sight: Sight) -> bool:
    """its task still runs, for all that SQS says, when patience is over"""
    return sight.cancels_in_vain


def still_running(sight: Sight) -> bool:
    """its task runs on, although it was to be cancelled"""
    return sight.task is not None and sight.task.status is TaskStatus.RUNNING


def task_runs(sight: Sight) -> bool:
    """its task runs, or is being cancelled"""
    return sight.task_runs


def to_end_for_good(sight: Sight) -> bool:
    """its task is over, and was cancelled to halt, or may not go on any more"""
    return bool(sight.course.halts_for or sight.look.forbidden)


def task_is_over(sight: Sight) -> bool:
    """its task is over, cancelled or to the end, and all is seen that the soak goes by"""
    return sight.task is not None and not sight.task_runs and not sight.look.hindered


def cancels_itself(sight: Sight) -> bool:
    """somebody else cancels its task"""
    return sight.task is not None and sight.task.status is TaskStatus.CANCELLING


def to_be_stopped(sight: Sight) -> bool:
    """its task runs, and may not: frozen, forbidden, hindered, or as many are back as halt it"""
    look = sight.look
    stops = look.frozen or look.forbidden or look.hindered or sight.too_many_are_back
    return (sight.task_runs or sight.may_run_unseen) and bool(stops)


def task_did_enough(sight: Sight) -> bool:
    """its task has moved the stage's letters, had its time, or is too fast for the consumers now"""
    enough = sight.stage_is_over or sight.is_too_fast or not sight.look.source.is_handled
    return sight.task_runs and enough


def forbidden(sight: Sight) -> bool:
    """a queue is not managed any more, its tag says no, or the cause is back"""
    return bool(sight.look.forbidden)


def too_old(sight: Sight) -> bool:
    """no letter can be older than the redrive"""
    return sight.is_too_old


def frozen(sight: Sight) -> bool:
    """changes are frozen, or a change calendar is closed"""
    return bool(sight.look.frozen)


def not_counted(sight: Sight) -> bool:
    """no census was taken at this tick, and one can be"""
    return sight.census is None and not sight.look.hindered


def task_unseen(sight: Sight) -> bool:
    """SQS does not say whether its task runs"""
    return sight.may_run_unseen


def hindered(sight: Sight) -> bool:
    """it cannot see what it has to, or keep apart what came back"""
    return bool(sight.look.hindered)


def hindered_for_long(sight: Sight) -> bool:
    """it cannot see what it has to, or keep apart what came back, until patience is over"""
    return sight.is_hindered_for_long


def too_many_back(sight: Sight) -> bool:
    """as many are back as halt it"""
    return sight.too_many_are_back


def nothing_left(sight: Sight) -> bool:
    """no letter is left that could be sent back"""
    return sight.left == 0


def stage_is_over(sight: Sight) -> bool:
    """the stage's letters were moved, or its time is over"""
    return sight.stage_is_over


def not_soaked(sight: Sight) -> bool:
    """a poison letter may not be back yet"""
    return not sight.is_soaked


def unread_for_long(sight: Sight) -> bool:
    """what was sent stands in the source unread, until patience is over"""
    return not sight.is_worked_off and sight.patience_is_over


def unread(sight: Sight) -> bool:
    """what was sent may still stand in the source unread"""
    return not sight.is_worked_off


def nobody_for_long(sight: Sight) -> bool:
    """the source's deletes are 0 or not measured, until patience is over"""
    return not sight.look.source.is_handled and sight.patience_is_over


def nobody(sight: Sight) -> bool:
    """the source's deletes are 0 or not measured"""
    return not sight.look.source.is_handled


def refused_for_long(sight: Sight) -> bool:
    """SQS takes nothing, until patience is over"""
    return sight.is_refused_for_good


def by_task(sight: Sight) -> bool:
    """the stage is for a move task, and none runs"""
    return sight.course.by_task


def nobodys_turn(sight: Sight) -> bool:
    """at its share of what the source's consumers delete, no letter's turn has come"""
    return sight.letters_now == 0
