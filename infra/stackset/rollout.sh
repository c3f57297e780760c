#!/bin/sh
# sh rollout.sh first|update [WAVE]   wave 0 are the canaries; WAVE goes on where it was halted
# Each wave is one operation of StackSets. After it the canaries' alarms are watched, because no
# operation of StackSets takes an alarm that would stop it. A bad alarm halts the script.
set -eu
how=${1:-}
from=${2:-0}
case $how in first | update) ;; *) sed -n 2p "$0" | cut -c3- >&2; exit 2 ;; esac
case $from in *[!0-9]*) echo "$from is no wave" >&2; exit 2 ;; esac
[ "$from" -le @LAST@ ] || { echo "there is no wave $from: the last is @LAST@" >&2; exit 2; }
alarms=@ALARMS@
at=${2:-} # the wave to go on with after a halt; empty: from the beginning
# Says how to go on however the script ends: an alarm, an expired token, Ctrl-C.
trap '[ $? = 0 ] || echo "halted; once all is well, go on with: sh $0 $how${at:+ $at}" >&2' EXIT
trap 'exit 130' INT TERM HUP QUIT PIPE

halt() {
  echo "$*" >&2
  exit 1
}
say() {
  echo "$(date +%H:%M) $*"
}
whose() { # halt unless the profile ($2) is of the account ($1)
  found=$(aws sts get-caller-identity --profile "$2" --query Account --output text)
  [ "$found" = "$1" ] || halt "the profile $2 is of account $found, not of $1"
}
stack_set() { # a call about the stack set
  verb=$1
  shift
  aws cloudformation "$verb" --stack-set-name @STACK_SET@ --call-as @CALL_AS@ --output text "$@"
}
with_template() { # a call that gives the stack set its template
  verb=$1
  shift
  stack_set "$verb" --template-url @URL@ --parameters @PARAMETERS@ --description "Mendq @KEY@" --capabilities CAPABILITY_NAMED_IAM "$@"
}
operate() { # begin an operation and wait until it ends; its name for people ($1), the call
  name=$1
  shift
  operation=$("$@" --query OperationId)
  polls=0
  while :; do
    state=$(stack_set describe-stack-set-operation --operation-id "$operation" --query StackSetOperation.Status)
    case $state in
      QUEUED | RUNNING | STOPPING)
        sleep 30
        polls=$((polls + 1))
        [ $((polls % 20)) != 0 ] || say "$name: $state for $((polls / 2)) minutes"
        ;;
      SUCCEEDED) return ;;
      *) halt "$name ended as ${state:-nothing}; aws cloudformation list-stack-set-operation-results --stack-set-name @STACK_SET@ --call-as @CALL_AS@ --operation-id $operation says why" ;;
    esac
  done
}
look() { # halt unless every alarm of every canary is in one of these states; a missing alarm is not
  for canary in @CANARIES@; do
    for region in @REGIONS@; do
      states=$(aws cloudwatch describe-alarms --alarm-names $alarms --profile "$canary" --region "$region" --query 'MetricAlarms[].[AlarmName,StateValue]' --output text)
      for alarm in $alarms; do
        state=$(echo "$states" | awk -v name="$alarm" '$1 == name { print $2 }')
        case " $* " in *" ${state:-missing} "*) ;; *) halt "$alarm is ${state:-missing}, of $canary in $region" ;; esac
      done
    done
  done
}
reached() { # halt unless every canary has a stack, in the state $1 if it is given
  # A canary outside the units is not deployed to: its old alarms, or none, would speak for it.
  for canary in @ACCOUNTS@; do
    for region in @REGIONS@; do
      state=$(stack_set list-stack-instances --stack-instance-account "$canary" --stack-instance-region "$region" --query 'Summaries[].Status')
      [ -n "$state" ] && [ "$state" = "${1:-$state}" ] || halt "the stack of canary $canary in $region is ${state:-not there}: it has to be in one of the units"
    done
  done
}
wave() { # deploy to the wave $1, which are the accounts $2, then watch the canaries
  [ "$1" -ge "$from" ] || return 0
  at=$1
  say "wave $1: $2"
  number=$1
  set -- --regions @REGIONS@ --deployment-targets "$2" --operation-preferences @PREFERENCES@
  case $how in
    first) operate "wave $number" stack_set create-stack-instances "$@" ;;
    update) operate "wave $number" with_template update-stack-set "$@" ;;
  esac
  [ "$number" != 0 ] || reached CURRENT
  say "wave $number is deployed"
  # New stacks are not made twice: after a halt `first` watches again, then takes the next wave.
  [ "$how" = update ] || at=$((number + 1))
  watch "$number"
}
watch() { # watch the canaries after the wave $1
  say "watching the canaries for @SOAK@ minutes"
  minutes=0
  while [ "$minutes" -lt @SOAK@ ]; do
    sleep 60
    minutes=$((minutes + 1))
    # Some alarms of a new stack ring until its first probe, so `first` looks only in the end.
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
  # In any state: each later wave names the template, which marks all other stacks as OUTDATED.
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
# No preferences: the set may have stacks in regions that RegionOrder no longer names.
operate "the deployment to accounts that join" with_template update-stack-set --auto-deployment Enabled=true,RetainStacksOnAccountRemoval=true
say "done: accounts that join a unit get a stack by themselves"
