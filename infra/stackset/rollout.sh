#!/bin/sh
# sh rollout.sh first|update [WAVE]   wave 0 are the canaries; WAVE goes on where it was halted
# After each wave the canaries' alarms are watched, and nothing goes further where one rings: no
# operation of StackSets takes an alarm that would stop it.
set -eu
how=${1:-}
from=${2:-0}
case $how in first | update) ;; *) sed -n 2p "$0" | cut -c3- >&2; exit 2 ;; esac
case $from in *[!0-9]*) echo "$from is no wave" >&2; exit 2 ;; esac
[ "$from" -le @LAST@ ] || { echo "there is no wave $from: the last is @LAST@" >&2; exit 2; }
alarms=@ALARMS@
at=${2:-}
# However it ends: by an alarm, by a token that has expired, by a key that was pressed.
trap '[ $? = 0 ] || echo "halted; once all is well, go on with: sh $0 $how${at:+ $at}" >&2' EXIT
trap 'exit 130' INT TERM HUP QUIT PIPE

halt() {
  echo "$*" >&2
  exit 1
}
say() {
  echo "$(date +%H:%M) $*"
}
whose() {
  found=$(aws sts get-caller-identity --profile "$2" --query Account --output text)
  [ "$found" = "$1" ] || halt "the profile $2 is of account $found, not of $1"
}
stack_set() {
  verb=$1
  shift
  aws cloudformation "$verb" --stack-set-name @STACK_SET@ --call-as @CALL_AS@ --output text "$@"
}
with_template() {
  verb=$1
  shift
  stack_set "$verb" --template-url @URL@ --parameters @PARAMETERS@ --description "Mendq @KEY@" --capabilities CAPABILITY_NAMED_IAM "$@"
}
finish() {
  polls=0
  while :; do
    state=$(stack_set describe-stack-set-operation --operation-id "$2" --query StackSetOperation.Status)
    case $state in
      QUEUED | RUNNING | STOPPING)
        sleep 30
        polls=$((polls + 1))
        [ $((polls % 20)) != 0 ] || say "$1: $state for $((polls / 2)) minutes"
        ;;
      SUCCEEDED) return ;;
      *) halt "$1 ended as ${state:-nothing}; aws cloudformation list-stack-set-operation-results --stack-set-name @STACK_SET@ --call-as @CALL_AS@ --operation-id $2 says why" ;;
    esac
  done
}
look() { # the states that are fine; an alarm that is not there is not
  fine=" $* "
  for canary in @CANARIES@; do
    for region in @REGIONS@; do
      states=$(aws cloudwatch describe-alarms --alarm-names $alarms --profile "$canary" --region "$region" --query 'MetricAlarms[].[AlarmName,StateValue]' --output text)
      for alarm in $alarms; do
        state=missing
        set -- $states
        while [ $# -ge 2 ]; do
          [ "$1" != "$alarm" ] || state=$2
          shift 2
        done
        case $fine in *" $state "*) ;; *) halt "$alarm is $state, of $canary in $region" ;; esac
      done
    done
  done
}
reached() { # the state that is fine; outside the units old alarms, or none, would speak for a canary
  for canary in @ACCOUNTS@; do
    for region in @REGIONS@; do
      state=$(stack_set list-stack-instances --stack-instance-account "$canary" --stack-instance-region "$region" --query 'Summaries[].Status')
      [ -n "$state" ] && [ "$state" = "${1:-$state}" ] || halt "the stack of canary $canary in $region is ${state:-not there}: it has to be in one of the units"
    done
  done
}
wave() { # its number, where it goes, how
  [ "$1" -ge "$from" ] || return 0
  at=$1
  say "wave $1: $2"
  set -- "$1" --regions @REGIONS@ --deployment-targets "$2" --operation-preferences "$3" --query OperationId
  number=$1
  shift
  if [ "$how" = first ]; then
    operation=$(stack_set create-stack-instances "$@")
  else
    operation=$(with_template update-stack-set "$@")
  fi
  finish "wave $number" "$operation"
  [ "$number" != 0 ] || reached CURRENT
  say "wave $number is deployed"
  # Its stacks are there: what is left is to watch the canaries, with which each beginning begins.
  [ "$how" = update ] || at=$((number + 1))
  watch "$number"
}
watch() { # the canaries, after a wave
  say "watching the canaries for @SOAK@ minutes"
  minutes=0
  while [ "$minutes" -lt @SOAK@ ]; do
    sleep 60
    minutes=$((minutes + 1))
    # What was just made is looked at in the end: until its first probe some alarms ring.
    [ "$how" = first ] || look OK INSUFFICIENT_DATA
    [ $((minutes % 10)) != 0 ] || say "wave $1: $minutes of @SOAK@ minutes watched"
  done
  look OK
}

@WHOSE@
soak=$(((@LAST@ - from) * @SOAK@))
if [ "$from" != 0 ]; then
  [ "$how" = update ] || soak=$((soak + @SOAK@))
  [ "$(stack_set describe-stack-set --query StackSet.Description)" = "Mendq @KEY@" ] || halt "the canaries have another version, or other parameters: begin with wave 0"
  # Each later wave names the template, which marks all others as OUTDATED.
  reached
fi
say "$((@LAST@ - from)) waves, watched for $((soak / 60)) h $((soak % 60)) min in all, and what StackSets takes; this has to keep running"
if [ "$how" = first ] && [ $# -lt 2 ]; then
  with_template create-stack-set --permission-model SERVICE_MANAGED --auto-deployment Enabled=false >/dev/null
elif [ "$how" = update ]; then
  look OK
elif [ "$from" != 0 ]; then
  watch $((from - 1))
fi
@WAVES@
at=@LAST@
operation=$(with_template update-stack-set --auto-deployment Enabled=true,RetainStacksOnAccountRemoval=true --query OperationId)
finish "the deployment to accounts that join" "$operation"
say "done: accounts that join a unit get a stack by themselves"
