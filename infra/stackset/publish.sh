#!/bin/sh
# sh publish.sh ORGANIZATION REGION...   such as: sh publish.sh o-exampleorgid eu-west-1 us-east-1
# Makes the bucket of each region where it is not there, lets the organization read it and nobody
# else, and copies there what is missing. It deletes nothing: what runs somewhere may be older.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 2 ] || { sed -n 2p "$0" | cut -c3- >&2; exit 2; }
organization=$1
shift
case $organization in *[!a-z0-9-]*) organization=none ;; esac
echo "$organization" | grep -Eqx 'o-[a-z0-9]{10,32}' || { echo "$organization is no organization's id, such as o-exampleorgid" >&2; exit 2; }
caller=$(aws sts get-caller-identity --query Arn --output text)
owner=$(echo "$caller" | cut -d: -f5)
partition=$(echo "$caller" | cut -d: -f2)
for region in "$@"; do
  bucket="@BUCKET@"
  # A name that somebody else took fails here: every call says whose the bucket has to be.
  ours="--bucket $bucket --region $region --expected-bucket-owner $owner"
  if ! aws s3api head-bucket $ours >/dev/null 2>&1; then
    place="--create-bucket-configuration LocationConstraint=$region"
    [ "$region" != us-east-1 ] || place=
    aws s3api create-bucket --bucket "$bucket" --region "$region" --object-ownership BucketOwnerEnforced $place >/dev/null
  fi
  aws s3api put-public-access-block $ours --public-access-block-configuration BlockPublicAcls=true,IgnorePublicAcls=true,BlockPublicPolicy=true,RestrictPublicBuckets=true
  aws s3api put-bucket-versioning $ours --versioning-configuration Status=Enabled
  policy=$(sed -e "s/@ORGANIZATION@/$organization/g" -e "s/@NAME@/$bucket/g" -e "s/@PARTITION@/$partition/g" "$here/bucket-policy.json")
  aws s3api put-bucket-policy $ours --policy "$policy"
  echo "$bucket: the organization $organization may read it"
  aws s3 sync "$here/objects" "s3://$bucket" --region "$region" --size-only --no-progress
done
